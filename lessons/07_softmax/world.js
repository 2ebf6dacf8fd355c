/* The worlds of this lesson. */

import "./pieces.js";
import "./halves.js";
