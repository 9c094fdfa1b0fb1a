import { Codex } from "@openai/codex-sdk";

const codex = new Codex({ codexPathOverride: "codex" });
const thread = codex.startThread({ sandboxMode: "workspace-write", skipGitRepoCheck: true });
const stop = new AbortController();
const { events } = await thread.runStreamed(process.argv[3], { signal: stop.signal });
try {
  for await (const event of events) {
    if (event.type === "item.started" && event.item.type === "command_execution") stop.abort();
  }
} catch (error) {
  if (!stop.signal.aborted) throw error;
}
console.log("cancelled");
