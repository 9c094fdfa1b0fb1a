/**
 * swarm in OpenCode: every write is checked against the locks of other sessions before it happens. OpenCode is also
 * given the swarm's MCP server and skills from here, so that no file of the user's has to name them. What fails in
 * here lets the call pass: OpenCode refuses a call where a plugin throws.
 */
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Hooks, type Answer, type Payload } from "../hooks.ts";

const FOLDER = dirname(fileURLToPath(import.meta.url));
const ROOT = resolve(FOLDER, "..", "..");
const LOOKED_UP_MS = 2_000; // how long a call waits at most for OpenCode to say whose sub-agent makes it

type Fields = Record<string, any>;
type Call = { tool: string; sessionID: string; callID: string; args?: Fields };

export default async function swarm({ client, directory }: { client: any; directory: string }) {
	const hooks = new Hooks(FOLDER);
	const parents = new Map<string, string>(); // session -> the one whose sub-agent it is, empty for none
	const here = new Set<string>(); // sessions, sub-agents' among them, that have been told of
	const begins = new Map<string, string>(); // session -> why it begins, where it is no old one
	const words = new Map<string, string>(); // user's message -> what the model reads with it
	const notices = new Map<string, string>(); // call -> what its result is to say besides
	let servers: string[] = []; // names of MCP servers, the longest first

	async function parent(id: string): Promise<string> {
		const known = parents.get(id);
		if (known !== undefined) return known;
		const asked = client.session.get({ path: { id } }).then((found: Fields) => found.data.parentID ?? "");
		const told = await Promise.race([asked, new Promise((done) => setTimeout(done, LOOKED_UP_MS, ""))]).catch(() => "");
		parents.set(id, told);
		return told;
	}

	/** What hooks are told: a sub-agent has a session of its own in OpenCode, and works in its parent's. */
	async function payload(id: string, event: string, more: object = {}): Promise<Payload> {
		let session = id;
		for (let up = await parent(session); up; up = await parent(session)) session = up;
		const agent = session === id ? {} : { agent_id: id };
		return { session_id: session, cwd: directory, hook_event_name: event, ...agent, ...more };
	}

	async function call(event: string, { tool, sessionID, callID, args }: Call): Promise<Payload> {
		const server = servers.find((name) => tool.startsWith(`${plain(name)}_`));
		const name = server === undefined ? tool : `mcp__${server}__${tool.slice(server.length + 1)}`;
		const more = { tool_name: name, tool_input: args, tool_use_id: callID };
		const folder = typeof args?.workdir === "string" ? { cwd: resolve(directory, args.workdir) } : {};
		return payload(sessionID, event, { ...more, ...folder });
	}

	async function ended(id: string): Promise<void> {
		if (here.delete(id) && !(await parent(id))) await hooks.inOrder(await payload(id, "SessionEnd"));
	}

	async function rested(id: string): Promise<void> {
		if (!here.has(id)) return;
		const isAgent = await parent(id);
		if (isAgent) here.delete(id);
		await hooks.inOrder(await payload(id, isAgent ? "SubagentStop" : "Stop"));
	}

	return {
		async config(config: Fields) {
			try {
				const own = JSON.parse(readFileSync(join(FOLDER, "mcp.json"), "utf8")).mcpServers;
				for (const [name, { command, args }] of Object.entries<Fields>(own)) {
					const words = [command, ...args].map((word) => word.replace("${SWARM_PLUGIN_ROOT}", ROOT));
					config.mcp = { [name]: { type: "local", command: words }, ...config.mcp };
				}
				config.skills = { ...config.skills, paths: [...(config.skills?.paths ?? []), join(ROOT, "skills")] };
				servers = Object.keys(config.mcp).sort((one, other) => other.length - one.length);
			} catch {
				// `swarm-mcp doctor` tells of it
			}
		},

		async event({ event }: { event: { type: string; properties: Fields } }) {
			try {
				const { info, sessionID = info?.id } = event.properties;
				if (event.type === "session.created") {
					parents.set(sessionID, info.parentID ?? "");
					begins.set(sessionID, "startup");
				}
				if (event.type === "session.compacted" && here.delete(sessionID)) begins.set(sessionID, "compact");
				if (event.type === "session.idle") await rested(sessionID);
				if (event.type === "session.deleted") await ended(sessionID);
			} catch {
				// the client goes on
			}
		},

		async "chat.message"({ sessionID }: { sessionID: string }, { message }: { message: Fields }) {
			try {
				const turn = await payload(sessionID, "UserPromptSubmit");
				const said: Answer[] = [];
				if (!here.has(sessionID)) {
					here.add(sessionID);
					const event = turn.agent_id ? "SubagentStart" : "SessionStart";
					said.push(await hooks.inOrder({ ...turn, hook_event_name: event, source: begins.get(sessionID) ?? "resume" }));
				}
				if (!turn.agent_id) said.push(await hooks.inOrder(turn));
				for (const { systemMessage } of said)
					if (systemMessage) client.tui.showToast({ body: { message: systemMessage, variant: "warning" } }).catch(() => {});
				const text = said.map((answer) => answer.additionalContext).filter(Boolean).join("\n\n");
				if (text) words.set(message.id, text);
			} catch {
				// the model is told nothing
			}
		},

		// Not kept in the conversation: OpenCode would make a title of it, and publish it where that is shared.
		async "experimental.chat.messages.transform"(_: object, { messages }: { messages: { info: Fields; parts: Fields[] }[] }) {
			for (const { info, parts } of messages) {
				const [text, id] = [words.get(info.id), `${parts.at(-1)?.id}s`];
				if (text) parts.push({ id, sessionID: info.sessionID, messageID: info.id, type: "text", synthetic: true, text });
			}
		},

		async "tool.execute.before"(of: Call, { args }: { args: Fields }) {
			let denial: string | undefined;
			try {
				const answer = await hooks.run(await call("PreToolUse", { ...of, args }));
				if (answer.permissionDecision === "deny") denial = answer.permissionDecisionReason;
				else if (answer.additionalContext) notices.set(of.callID, answer.additionalContext);
			} catch {
				// the call passes
			}
			if (denial) throw new Error(denial);
		},

		async "tool.execute.after"(of: Call, result: Fields) {
			try {
				const after = await hooks.run(await call("PostToolUse", of));
				const text = [notices.get(of.callID), after.additionalContext].filter(Boolean).join("\n");
				notices.delete(of.callID);
				if (text && Array.isArray(result.content)) result.content.push({ type: "text", text }); // of an MCP server
				else if (text) result.output = `${result.output}\n\n${text}`;
			} catch {
				// the result stays as it is
			}
		},

		async "shell.env"({ sessionID }: { sessionID?: string }, { env }: { env: Fields }) {
			if (sessionID) env.OPENCODE_SESSION_ID = (await payload(sessionID, "")).session_id;
		},

		async dispose() {
			await Promise.all([...here].map(ended));
		},
	};
}

/** A server's name as it stands in the names of its tools. */
function plain(name: string): string {
	return name.replace(/[^a-zA-Z0-9_-]/g, "_");
}
