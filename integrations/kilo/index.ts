/** swarm in Kilo. A link in its plugin folder leads to this file. */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { pluginOf } from "../opencode.ts";

export default pluginOf(dirname(fileURLToPath(import.meta.url)), "KILO_SESSION_ID");
