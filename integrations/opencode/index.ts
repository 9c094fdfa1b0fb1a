/** swarm in OpenCode: what its plugins folder links to. */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { pluginOf } from "../opencode.ts";

export default pluginOf(dirname(fileURLToPath(import.meta.url)), "OPENCODE_SESSION_ID");
