/**
 * swarm in pi: every write is checked against the locks of other sessions before it happens, and the tools of the
 * swarm's server are at hand. Faults in here let the call pass: pi blocks a call if its handler throws.
 */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { Hooks, type Answer, type Payload } from "../hooks.ts";
import { Servers } from "./servers.ts";

const FOLDER = dirname(fileURLToPath(import.meta.url));
const ACTING = Symbol.for("swarm-mcp.acting");
const SOURCES: Record<string, string> = { reload: "resume", new: "clear" };

export default function swarm(pi: ExtensionAPI) {
	// Installed and named on the command line as well: only the copy loaded first acts, so that no hook runs twice.
	const process_ = globalThis as { [ACTING]?: string };
	if (process_[ACTING] && process_[ACTING] !== FOLDER) return;
	process_[ACTING] = FOLDER;

	const hooks = new Hooks(FOLDER);
	const servers = new Servers(pi, FOLDER);
	const notices = new Map<string, string>(); // call -> further words for its result
	let greeting: Promise<Answer> = Promise.resolve({});
	let joined = ""; // the session that has been told of: pi may tell of its start twice
	let over = false; // the session is leaving; while pi closes down, its agent may still be at work

	const payload = (ctx: ExtensionContext, event: string, more: object = {}): Payload => ({
		session_id: ctx.sessionManager.getSessionId(),
		cwd: ctx.cwd,
		hook_event_name: event,
		...more,
	});
	const call = (ctx: ExtensionContext, event: string, of: { toolName: string; toolCallId: string; input: unknown }) =>
		payload(ctx, event, { tool_name: of.toolName, tool_input: of.input, tool_use_id: of.toolCallId });

	pi.on("session_start", (event, ctx) => {
		const start = payload(ctx, "SessionStart", { source: SOURCES[event.reason] ?? event.reason });
		if (start.session_id === joined) return;
		joined = start.session_id;
		const answer = hooks.inOrder(start);
		answer.then((said) => said.systemMessage && ctx.hasUI && ctx.ui.notify(said.systemMessage, "warning")).catch(() => {});
		if (event.reason !== "reload") greeting = answer; // after a reload the model has it still
		servers.start(ctx);
	});

	pi.on("session_compact", (_event, ctx) => {
		greeting = hooks.inOrder(payload(ctx, "SessionStart", { source: "compact" }));
	});

	pi.on("before_agent_start", async (_event, ctx) => {
		const turn = hooks.inOrder(payload(ctx, "UserPromptSubmit"));
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
		if (!over) hooks.inOrder(payload(ctx, "Stop")); // or it would come back after it has left
	});

	pi.on("session_shutdown", async (event, ctx) => {
		servers.stop();
		if (process_[ACTING] === FOLDER) delete process_[ACTING];
		if (event.reason === "reload") return; // no end: the session keeps its locks
		over = true;
		await hooks.inOrder(payload(ctx, "SessionEnd", { reason: event.reason }));
	});
}
