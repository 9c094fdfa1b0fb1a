/**
 * The plugin's hooks, as `hooks.json` beside this file has them: the checker of this client answers, or a short process
 * that reads a payload. Any fault counts as no answer.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { ask, markEnd, type Environment } from "./checker.ts";

export type Payload = { session_id: string; cwd: string; hook_event_name: string; tool_name?: string; [more: string]: unknown };
export type Answer = {
	permissionDecision?: string;
	permissionDecisionReason?: string;
	additionalContext?: string;
	updatedInput?: Record<string, unknown>; // in place of the call's input: its text, merged with others' changes
	systemMessage?: string; // for the user
};
type Hook = { command: string; timeout: number };
type Group = { matcher?: string; hooks: Hook[] };

const LEVELS = 64; // of nesting that a check looks at; JSON.stringify fails on some thousands
const LATE_MS = 50; // for an answer that is there when a hook's time is over
// The end of a hook's command, which names its client and event, and the interpreter where that is known.
const LAUNCHED = /\/bin\/sh ("[^"]*\/hook\.sh") ([\w-]+) (\w+)(?: ([^;]+))?; exit 0$/;
const LONGEST = 1024 * 1024; // characters of an answer; a longer one is none

export class Hooks {
	private readonly root: string;
	private wired: Record<string, Group[]> = {};
	private last: Promise<unknown> = Promise.resolve();
	private readonly open = new Map<string, Set<unknown>>(); // session and agent -> its calls that may write now

	/** `tellsEnds`: the client tells the end of each call by an event of its own, see `ended`. */
	constructor(folder: string, private readonly tellsEnds = false) {
		this.root = resolve(folder, "..", "..");
		try {
			this.wired = JSON.parse(readFileSync(join(folder, "hooks.json"), "utf8")).hooks;
		} catch {
			this.wired = {}; // `swarm-mcp doctor` tells of it
		}
	}

	/** Run the hooks of this payload's event; the first answer that decides or says something. */
	async run(payload: Payload): Promise<Answer> {
		const event = payload.hook_event_name;
		if (!event.endsWith("ToolUse") && !event.endsWith("ToolUseFailure")) this.open.delete(owner(payload));
		if (event.startsWith("PostToolUse") && !this.tellsEnds) await this.ended(payload);
		const answer = await this.answer(payload);
		if (event === "PreToolUse" && answer.permissionDecision === "deny") this.open.get(owner(payload))?.delete(payload.tool_use_id);
		return answer;
	}

	/** A call is over: mark that, unless another one of the same agent goes on, which may write still. */
	async ended(payload: Payload): Promise<void> {
		const calls = this.open.get(owner(payload));
		if (!calls?.delete(payload.tool_use_id) || calls.size) return;
		await markEnd(process.env, payload.session_id, String(payload.agent_id ?? ""));
	}

	private async answer(payload: Payload): Promise<Answer> {
		try {
			for (const group of this.wired[payload.hook_event_name] ?? []) {
				if (group.matcher && !new RegExp(group.matcher).test(payload.tool_name ?? "")) continue;
				if (payload.hook_event_name === "PreToolUse") this.begins(payload);
				for (const hook of group.hooks) {
					const answer = understood(await this.ask(hook, payload));
					if (Object.keys(answer).length) return answer;
				}
			}
		} catch {
			// falls through to no answer
		}
		return {};
	}

	private begins(payload: Payload): void {
		const calls = this.open.get(owner(payload)) ?? new Set();
		this.open.set(owner(payload), calls.add(payload.tool_use_id));
	}

	/** As `run`, after all that were asked for in order before: a session joins before it works, and leaves last. */
	inOrder(payload: Payload): Promise<Answer> {
		const answer = this.last.then(() => this.run(payload));
		this.last = answer;
		return answer;
	}

	/** The output of a hook. Where no checker answers, a process runs it in the time that is left. */
	private async ask({ command, timeout }: Hook, payload: Payload): Promise<string> {
		const end = performance.now() + timeout * 1000;
		const environment: Environment = { ...process.env, SWARM_PLUGIN_ROOT: this.root };
		const given = JSON.stringify(outer(payload, LEVELS));
		const [, script, client, event, python = '""'] = LAUNCHED.exec(command) ?? [];
		const none = { text: undefined, isAsked: false, triedNs: undefined };
		const { text, isAsked, triedNs } = script ? await ask([client, event], environment, given, timeout * 1000) : none;
		if (text !== undefined) return text;
		if (triedNs) environment.SWARM_TRIED_NS = triedNs; // what it may have noted of this call is not noted twice
		// "alone": without the relay, which would ask the checker once more.
		const alone = `[ -r ${script} ] && exec /bin/sh ${script} ${client} ${event} ${python} alone; exit 0`;
		return run(isAsked ? alone : command, environment, given, end - performance.now());
	}
}

/** The output of a shell's command that ends within the time; empty otherwise. */
function run(command: string, environment: Environment, input: string, ms: number): Promise<string> {
	return new Promise((done) => {
		const child = spawn("/bin/sh", ["-c", command], { env: environment, stdio: ["pipe", "pipe", "ignore"] });
		let text = "";
		const end = (answer: string) => {
			clearTimeout(timer);
			done(answer);
		};
		const stop = () => {
			child.kill("SIGKILL");
			child.stdout.destroy();
			child.unref();
			end("");
		};
		// Where this process was kept from running, the answer waits behind the timer that is over.
		let timer = setTimeout(() => {
			timer = setTimeout(stop, LATE_MS);
		}, ms);
		child.on("error", () => end(""));
		child.on("close", () => end(text));
		child.stdout.setEncoding("utf8");
		child.stdout.on("data", (chunk: string) => {
			text += chunk;
			if (text.length > LONGEST) stop();
		});
		child.stdin.on("error", () => {}); // it has ended without reading
		child.stdin.end(input);
	});
}

function owner({ session_id: session, agent_id: agent }: Payload): string {
	return `${session}\0${agent ?? ""}`;
}

/** A JSON value without the parts that nest deeper than `levels`. */
function outer(value: unknown, levels: number): unknown {
	if (value === null || typeof value !== "object") return value;
	if (!levels) return null;
	if (Array.isArray(value)) return value.map((one) => outer(one, levels - 1));
	return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, outer(one, levels - 1)]));
}

function understood(text: string): Answer {
	if (!text.trim()) return {};
	const { hookSpecificOutput: output, systemMessage } = JSON.parse(text);
	const answer = output && typeof output === "object" ? output : {};
	return typeof systemMessage === "string" ? { ...answer, systemMessage } : answer;
}
