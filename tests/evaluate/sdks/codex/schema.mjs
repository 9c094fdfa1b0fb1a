import { Codex } from "@openai/codex-sdk";

const schema = {
  type: "object",
  properties: { title: { type: "string" } },
  required: ["title"],
  additionalProperties: false,
};
const codex = new Codex({ codexPathOverride: "codex" });
const thread = codex.startThread({ skipGitRepoCheck: true });
const turn = await thread.run(process.argv[3], { outputSchema: schema });
console.log(JSON.parse(turn.finalResponse).title);
