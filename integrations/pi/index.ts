/**
 * swarm in pi and its fork oh-my-pi: every write is checked against the locks of other sessions before it happens, and
 * the tools of the swarm's server are at hand. Faults in here let the call pass: pi blocks a call if its handler throws.
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { Hooks, type Answer, type Payload } from "../hooks.ts";
import { Servers } from "./servers.ts";

const ACTING = Symbol.for("swarm-mcp.acting");
const SOURCES: Record<string, string> = { reload: "resume", new: "clear", fork: "resume" };
const sessions = new Map<string, string>(); // file of a session of this process -> the session, or that of its parent

export default function swarm(pi: ExtensionAPI) {
	extend(pi, dirname(fileURLToPath(import.meta.url)));
}

/** Add swarm to a client; `hooks.json` and `mcp.json` for it are in `folder`. */
export function extend(pi: ExtensionAPI, folder: string) {
	// Installed and named on the command line as well: only the copy loaded first acts, so that no hook runs twice.
	const process_ = globalThis as { [ACTING]?: string };
	if (process_[ACTING] && process_[ACTING] !== folder) return;
	process_[ACTING] = folder;

	const hooks = new Hooks(folder);
	const servers = new Servers(pi, folder);
	const notices = new Map<string, string>(); // call -> further words for its result
	let greeting: Promise<Answer> = Promise.resolve({});
	let joined: Payload | undefined; // the start that has been told: pi may tell it twice
	let over = false; // the session is leaving; while pi closes down, its agent may still be at work

	/** The payload of hooks: a sub-agent of oh-my-pi has a session of its own, with its file in a folder of its parent's. */
	const payload = (ctx: ExtensionContext, event: string, more: object = {}): Payload => {
		const id = ctx.sessionManager.getSessionId();
		const user = sessions.get(`${dirname(ctx.sessionManager.getSessionFile() ?? "")}.jsonl`);
		return { session_id: user ?? id, ...(user && { agent_id: id }), cwd: ctx.cwd, hook_event_name: event, ...more };
	};
	const call = (ctx: ExtensionContext, event: string, of: { toolName: string; toolCallId: string; input: unknown }) =>
		payload(ctx, event, { tool_name: of.toolName, tool_input: of.input, tool_use_id: of.toolCallId });

	const begin = (ctx: ExtensionContext, reason: string) => {
		const start = payload(ctx, "SessionStart", { source: SOURCES[reason] ?? reason });
		if (start.session_id === joined?.session_id && start.agent_id === joined.agent_id) return;
		joined = start;
		sessions.set(ctx.sessionManager.getSessionFile() ?? "", start.session_id);
		if (start.agent_id) return; // it is told with its task
		const answer = hooks.inOrder(start);
		answer.then((said) => said.systemMessage && ctx.hasUI && ctx.ui.notify(said.systemMessage, "warning")).catch(() => {});
		if (reason !== "reload") greeting = answer; // after a reload the model has it still
	};

	pi.on("session_start", (event, ctx) => {
		begin(ctx, event.reason ?? "startup");
		servers.start(ctx.cwd, () => joined?.session_id ?? "");
	});

	// pi closes down and starts anew where its fork tells of another session.
	for (const name of ["session_switch", "session_branch"])
		pi.on(name as "session_start", async (event, ctx) => {
			if (joined && joined.session_id !== ctx.sessionManager.getSessionId())
				await hooks.inOrder({ ...joined, hook_event_name: "SessionEnd" });
			begin(ctx, event.reason ?? "fork");
		});

	pi.on("session_compact", (_event, ctx) => {
		if (!joined?.agent_id) greeting = hooks.inOrder(payload(ctx, "SessionStart", { source: "compact" }));
	});

	pi.on("before_agent_start", async (_event, ctx) => {
		const turn = hooks.inOrder(payload(ctx, joined?.agent_id ? "SubagentStart" : "UserPromptSubmit"));
		const answers = [await greeting, await turn];
		greeting = Promise.resolve({});
		await servers.ready;
		const content = answers.map((answer) => answer.additionalContext).filter(Boolean).join("\n\n");
		return content ? { message: { customType: "swarm", content, display: false } } : undefined;
	});

	pi.on("tool_call", async (event, ctx) => {
		if (over) return { block: true, reason: "the session is ending" };
		try {
			const answer = await hooks.run({ ...call(ctx, "PreToolUse", event), takes_input: true });
			const reason = answer.permissionDecisionReason;
			if (answer.permissionDecision === "deny" && reason) return { block: true, reason };
			if (answer.updatedInput) Object.assign(event.input, answer.updatedInput);
			if (answer.additionalContext) notices.set(event.toolCallId, answer.additionalContext);
		} catch {
			// the call passes
		}
		return undefined;
	});

	pi.on("tool_result", async (event, ctx) => {
		const after = await hooks.run(call(ctx, event.isError ? "PostToolUseFailure" : "PostToolUse", event));
		const text = [notices.get(event.toolCallId), after.additionalContext].filter(Boolean).join("\n");
		notices.delete(event.toolCallId);
		const script = (event as { parentToolCallId?: string }).parentToolCallId;
		if (script) {
			// A call that a script made: the model reads the script's result alone, and the script may need this one as it is.
			if (text) notices.set(script, [notices.get(script), text].filter(Boolean).join("\n"));
			return undefined;
		}
		return text ? { content: [...event.content, { type: "text" as const, text }] } : undefined;
	});

	pi.on("agent_end", (_event, ctx) => {
		if (!over) hooks.inOrder(payload(ctx, joined?.agent_id ? "SubagentStop" : "Stop")); // or it would come back after it has left
	});

	pi.on("session_shutdown", async (event, ctx) => {
		servers.stop();
		const { reason } = event as { reason?: string };
		if (!joined?.agent_id && process_[ACTING] === folder) delete process_[ACTING];
		if (reason === "reload") return; // no end: the session keeps its locks
		over = true;
		sessions.delete(ctx.sessionManager.getSessionFile() ?? "");
		if (!joined?.agent_id) await hooks.inOrder(payload(ctx, "SessionEnd", { reason }));
	});
}
