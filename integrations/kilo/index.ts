/** swarm in Kilo: what its plugins folder links to. */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { pluginOf } from "../opencode.ts";

export default pluginOf(dirname(fileURLToPath(import.meta.url)), "KILO_SESSION_ID");
