import { Codex } from "@openai/codex-sdk";

const codex = new Codex({ codexPathOverride: "codex" });
const thread = codex.startThread({ sandboxMode: "workspace-write", skipGitRepoCheck: true });
const { events } = await thread.runStreamed(process.argv[3]);
for await (const event of events) console.log(event.type);
