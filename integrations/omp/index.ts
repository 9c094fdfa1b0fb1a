/** swarm in oh-my-pi. A link in its folder of extensions leads to this file. */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { extend } from "../pi/index.ts";

export default function swarm(omp: ExtensionAPI) {
	extend(omp, dirname(fileURLToPath(import.meta.url)));
}
