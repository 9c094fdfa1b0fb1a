/**
 * swarm in Cline: every write is checked against the locks of other sessions before it happens. Cline runs its plugins
 * in a process of each session; what one throws in there, or does not answer within 3 seconds, fails the model's whole
 * run. So nothing in here does either: then the call passes.
 */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { Hooks, type Answer, type Payload } from "../hooks.ts";

const FOLDER = dirname(fileURLToPath(import.meta.url));
const PATIENCE_MS = 2_000; // what is not answered until then is told later
const IDLE_MS = Number(process.env.CLINE_PLUGIN_IDLE_TIMEOUT_MS) || 30 * 60_000; // Cline ends a process that rests so long
const GRACE_MS = 250; // between being asked to end and being killed are 300
const OWN_TOOLS = "swarm__"; // of the swarm's MCP server

type Fields = Record<string, any>;

const hooks = new Hooks(FOLDER);
const folder = (): string => (globalThis as Fields).__clineSessionEnv?.cwd ?? process.cwd();
let session = "";
let main = ""; // the session's own agent: all others are its sub-agents and teammates
let isAtWork = false; // the main agent has a turn
let seen = Date.now(); // when Cline has called last
let untold: string[] = []; // what the model has yet to be told
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

/** What hooks answer, where that is before Cline's patience ends. */
function soon(answer: Promise<Answer>): Promise<Answer> {
	let timer: NodeJS.Timeout | undefined;
	const enough = new Promise<Answer>((done) => {
		timer = setTimeout(done, PATIENCE_MS, {});
	});
	return Promise.race([answer, enough]).finally(() => clearTimeout(timer));
}

/** Run a hook of the session itself, whose words are told as soon as they are there. */
async function ofSession(event: string, more: object = {}): Promise<Answer> {
	const answer = await hooks.inOrder(payload(event, more));
	if (answer.additionalContext) untold.push(answer.additionalContext);
	return {};
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
		for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.once(signal, leave);
	},

	hooks: {
		async beforeRun({ snapshot }: Fields) {
			if (!snapshot.parentAgentId && !isAtWork) main = snapshot.agentId;
			const agent = agentOf(snapshot);
			if ("agent_id" in agent) {
				const { additionalContext } = await soon(hooks.run(payload("SubagentStart", agent)));
				return additionalContext ? { appendContext: additionalContext } : {};
			}
			isAtWork = true;
			await soon(ofSession("UserPromptSubmit"));
			return told();
		},

		async beforeTool(made: Fields) {
			const { permissionDecision, permissionDecisionReason: reason, additionalContext } = await soon(hooks.run(call("PreToolUse", made)));
			if (permissionDecision === "deny" && reason) {
				denied.add(made.toolCall.toolCallId);
				return { skip: true, reason };
			}
			// Cline's server for the sessions of all terminals does not tell MCP servers which of them calls.
			const isOwn = made.toolCall.toolName.startsWith(OWN_TOOLS);
			const input = isOwn ? { input: { ...made.input, _session: session } } : {};
			return { ...input, ...told(additionalContext) };
		},

		async afterTool(made: Fields) {
			// An error would count as a mistake of the model, and after three in a row Cline gives the run up.
			if (denied.delete(made.toolCall.toolCallId)) return { result: { ...made.result, isError: false } };
			const { additionalContext } = await soon(hooks.run(call("PostToolUse", made)));
			return told(additionalContext);
		},

		async afterRun({ snapshot }: Fields) {
			const agent = agentOf(snapshot);
			if ("agent_id" in agent) {
				await soon(hooks.run(payload("SubagentStop", agent)));
				return;
			}
			isAtWork = false;
			await soon(ofSession("Stop"));
		},
	},
};
