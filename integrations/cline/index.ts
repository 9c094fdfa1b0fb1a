/**
 * swarm in Cline: every write is checked against the locks of other sessions before it happens. Cline runs its plugins
 * in a process of each session. A plugin that throws, or does not answer within 3 seconds, fails the model's whole
 * run. So nothing in here does either (hooks.json has shorter times): then the call passes.
 */
import { readFileSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Hooks, type Payload } from "../hooks.ts";

const FOLDER = dirname(fileURLToPath(import.meta.url));
const PATIENCE_MS = 2_000; // later answers of the session's own hooks come with the next event
const IDLE_MS = Number(process.env.CLINE_PLUGIN_IDLE_TIMEOUT_MS) || 30 * 60_000; // Cline ends a process that rests so long
const GRACE_MS = 250; // between being asked to end and being killed are 300
const OWN_TOOLS = `${ownServer()}__`; // of the swarm's MCP server

type Fields = Record<string, any>;

function ownServer(): string {
	try {
		return Object.keys(JSON.parse(readFileSync(join(FOLDER, "mcp.json"), "utf8")).mcpServers)[0];
	} catch {
		return "swarm";
	}
}

const hooks = new Hooks(FOLDER);
function folder(): string {
	const { cwd = "" } = (globalThis as Fields).__clineSessionEnv ?? {};
	return isAbsolute(cwd) ? cwd : process.cwd(); // `cline -c sub` has it as `sub`, and has gone there itself
}
let session = "";
let main = ""; // the session's own agent: all others are its sub-agents and teammates
let isAtWork = false; // the main agent has a turn
let seen = Date.now(); // when Cline has called last
let untold: string[] = []; // words that the model has not read yet
const denied = new Set<string>(); // calls

function payload(event: string, more: object = {}): Payload {
	seen = Date.now();
	return { session_id: session, cwd: folder(), hook_event_name: event, ...more };
}

const agentOf = ({ agentId, parentAgentId }: Fields): object =>
	parentAgentId || (main && agentId !== main) ? { agent_id: agentId } : {};

const call = (event: string, { snapshot, toolCall, input }: Fields): Payload => {
	const made = { tool_name: toolCall.toolName, tool_input: input, tool_use_id: toolCall.toolCallId };
	return payload(event, { ...made, ...agentOf(snapshot) });
};

/** Run a hook of the session itself, after those before it. Its words are told as soon as they are there. */
async function ofSession(event: string, more: object = {}): Promise<void> {
	const answered = hooks.inOrder(payload(event, more)).then((answer) => {
		if (answer.additionalContext) untold.push(answer.additionalContext);
	});
	let timer: NodeJS.Timeout | undefined;
	const enough = new Promise<void>((done) => {
		timer = setTimeout(done, PATIENCE_MS);
	});
	await Promise.race([answered, enough]);
	clearTimeout(timer);
}

function told(...words: (string | undefined)[]): { appendContext?: string } {
	const text = [...untold, ...words].filter(Boolean).join("\n\n");
	untold = [];
	return text ? { appendContext: text } : {};
}

/** The session ends, or Cline takes back the memory of one that rests: that goes on with a process of its own later. */
function leave(): void {
	const isResting = Date.now() - seen >= IDLE_MS;
	setTimeout(() => process.exit(), GRACE_MS);
	if (session && !isResting) hooks.run(payload("SessionEnd")).then(() => process.exit());
}

export default {
	name: "swarm",
	manifest: { capabilities: ["hooks", "skills"] },

	setup(_api: unknown, { session: own }: Fields = {}) {
		session = own?.sessionId ?? "";
		if (!session) return; // Cline loads plugins once more, to know their commands
		ofSession("SessionStart", { source: "startup" });
		for (const signal of ["SIGTERM", "SIGHUP"]) process.once(signal, leave);
		process.on("SIGINT", () => {}); // from the terminal, to Cline as well: it asks this process to end if it ends itself
	},

	hooks: {
		beforeRun: quietly(async ({ snapshot }) => {
			if (!snapshot.parentAgentId && !isAtWork) main = snapshot.agentId;
			const agent = agentOf(snapshot);
			if ("agent_id" in agent) {
				const { additionalContext } = await hooks.run(payload("SubagentStart", agent));
				return additionalContext ? { appendContext: additionalContext } : {};
			}
			isAtWork = true;
			await ofSession("UserPromptSubmit");
			return told();
		}),

		beforeTool: quietly(async (made) => {
			const answer = await hooks.run({ ...call("PreToolUse", made), takes_input: true });
			const { permissionDecision, permissionDecisionReason: reason, additionalContext, updatedInput } = answer;
			if (permissionDecision === "deny" && reason) {
				denied.add(made.toolCall.toolCallId);
				return { skip: true, reason };
			}
			// Cline's server for the sessions of all terminals does not name the calling session to MCP servers.
			const isOwn = made.toolCall.toolName.startsWith(OWN_TOOLS);
			const input = isOwn ? { input: { ...made.input, _session: session } } : {};
			// The hook has all commands of a call as one text. Cline asks its user afterwards.
			const merged = updatedInput?.command ? { input: { ...made.input, commands: [updatedInput.command] } } : {};
			return { ...input, ...merged, ...told(additionalContext) };
		}),

		afterTool: quietly(async (made) => {
			// An error would count as a mistake of the model, and after three in a row Cline gives the run up.
			if (denied.delete(made.toolCall.toolCallId)) return { result: { ...made.result, isError: false } };
			const { additionalContext } = await hooks.run(call("PostToolUse", made));
			return told(additionalContext);
		}),

		afterRun: quietly(async ({ snapshot }) => {
			const agent = agentOf(snapshot);
			if ("agent_id" in agent) return void (await hooks.run(payload("SubagentStop", agent)));
			isAtWork = false;
			await ofSession("Stop");
		}),
	},
};

/** A handler that never fails. */
function quietly(handler: (made: Fields) => Promise<object | void>) {
	return (made: Fields) => handler(made).catch(() => undefined);
}
