/* The worlds of this lesson. */

import "./grid.js";
import "./waves.js";
