/* The worlds of this lesson. */

import "./memory.js";
import "./tiles.js";
