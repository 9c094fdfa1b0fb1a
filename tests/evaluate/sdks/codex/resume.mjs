import { Codex } from "@openai/codex-sdk";

const codex = new Codex({ codexPathOverride: "codex" });
const thread = codex.startThread({ sandboxMode: "workspace-write", skipGitRepoCheck: true });
for (const prompt of process.argv.slice(3)) {
  console.log((await thread.run(prompt)).finalResponse);
}
