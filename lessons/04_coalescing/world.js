/* The worlds of this lesson. */

import "./warp.js";
import "./transpose.js";
