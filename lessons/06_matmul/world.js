/* The worlds of this lesson. */

import "./walk.js";
import "./groups.js";
