/**
 * swarm in OpenCode and its fork Kilo: every write is checked against the locks of other sessions before it happens. The
 * client is also given the swarm's MCP server and skills from here, so that no file of the user's has to name them. Faults
 * in here let the call pass: these clients refuse a call if a plugin throws.
 */
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Hooks, type Answer, type Payload } from "./hooks.ts";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const LOOKED_UP_MS = 2_000; // the longest wait of a call for OpenCode to name the session of a sub-agent
const NOTED_MS = 500; // and for it to note the call's input
const NAMES = ["swarm", "swarm-locks", "swarm-locks-2"]; // for the plugin's server: the first that no other server has
const RUNS_SWARM = /(swarm[-_]mcp|swarm-locks|integrations\/coordinator\.sh)$/;
const WAIT_MS = 24 * 3600_000; // how long a tool of the server may wait for others; for its start that would be too long

type Fields = Record<string, any>;
type Call = { tool: string; sessionID: string; callID: string; args?: Fields };
type Message = { info: Fields; parts: Fields[] };

/** The plugin of the client whose `hooks.json` and `mcp.json` are in `folder`; `idVariable` names the session to its shells. */
export function pluginOf(folder: string, idVariable: string) {
	return (given: { client: any; directory: string }) => swarm(new Hooks(folder, true), folder, idVariable, given);
}

async function swarm(hooks: Hooks, folder: string, idVariable: string, { client, directory }: { client: any; directory: string }) {
	const parents = new Map<string, string>(); // session of a sub-agent -> its parent, or an empty text
	const here = new Set<string>(); // sessions, sub-agents' among them, that have been told of
	const begins = new Map<string, string>(); // session -> why it begins, where it is no old one
	const words = new Map<string, string>(); // user's message -> words for the model beside it
	const notices = new Map<string, string>(); // call -> further words for its result
	const noted = new Set<string>(); // calls of the plugin's own tools that OpenCode has noted
	let servers: string[] = []; // names of MCP servers, the longest first
	let own: Fields | undefined; // the plugin's own
	let ownName = "swarm";

	async function parent(id: string): Promise<string> {
		const asked = async () => (await client.session.get({ path: { id } })).data.parentID ?? "";
		if (!parents.has(id)) parents.set(id, await Promise.race([asked().catch(() => ""), pause(LOOKED_UP_MS).then(() => "")]));
		return parents.get(id) ?? "";
	}

	/** The payload of hooks: a sub-agent has a session of its own in OpenCode, and works in its parent's. */
	async function payload(id: string, event: string, more: object = {}): Promise<Payload> {
		let session = id;
		for (let up = await parent(session); up; up = await parent(session)) session = up;
		const agent = session === id ? {} : { agent_id: id };
		return { session_id: session, cwd: directory, hook_event_name: event, ...agent, ...more };
	}

	async function call(event: string, { tool, sessionID, callID, args }: Call): Promise<Payload> {
		const server = servers.find((name) => tool.startsWith(`${name.replace(/[^a-zA-Z0-9_-]/g, "_")}_`));
		const name = server === undefined ? tool : `mcp__${server}__${tool.slice(server.length + 1)}`;
		const cwd = typeof args?.workdir === "string" ? resolve(directory, args.workdir) : directory;
		return payload(sessionID, event, { tool_name: name, tool_input: args, tool_use_id: callID, cwd });
	}

	async function ended(id: string): Promise<void> {
		if (here.delete(id) && !(await parent(id))) await hooks.inOrder(await payload(id, "SessionEnd"));
	}

	async function rested(id: string): Promise<void> {
		const agent = here.has(id) && (await parent(id));
		if (agent) here.delete(id);
		if (agent !== false) await hooks.inOrder(await payload(id, agent ? "SubagentStop" : "Stop"));
	}

	return {
		config: quietly(async (config: Fields) => {
			const { command, args, env } = JSON.parse(readFileSync(join(folder, "mcp.json"), "utf8")).mcpServers.swarm;
			const argv = [command, ...args].map((word) => word.replace("${SWARM_PLUGIN_ROOT}", ROOT));
			const swarms = config.mcp?.swarm; // perhaps another program of the user's; or this one, set otherwise or switched off
			if (!swarms || isAnother(swarms)) {
				ownName = NAMES.find((name) => !config.mcp?.[name]) ?? "";
				own = { type: "local", command: argv, environment: env };
				if (ownName) config.mcp = { ...config.mcp, [ownName]: own };
			}
			const skills = join(ROOT, "skills");
			config.skills = { ...config.skills, paths: [...(config.skills?.paths ?? []), skills] };
			config.skill_path_origins = { ...config.skill_path_origins, [skills]: { trusted: true } }; // else Kilo leaves them out
			servers = Object.keys(config.mcp ?? {}).sort((one, other) => other.length - one.length);
		}),

		event: quietly(async ({ event: { type, properties } }: { event: { type: string; properties: Fields } }) => {
			const { info, part, sessionID: id = info?.id } = properties;
			if (type === "session.created") {
				parents.set(id, info.parentID ?? "");
				begins.set(id, "startup");
			} else if (type === "session.compacted" && here.delete(id)) begins.set(id, "compact");
			else if (type === "session.idle") await rested(id);
			else if (type === "session.deleted") await ended(id);
			else if (part?.tool?.startsWith(`${ownName}_`) && part.state.status === "running") noted.add(part.callID);
			// `tool.execute.after` is not told of a call that has failed.
			if (part?.callID && ["completed", "error"].includes(part.state?.status))
				await hooks.ended(await payload(part.sessionID, "PostToolUse", { tool_use_id: part.callID }));
		}),

		"chat.message": quietly(async ({ sessionID }: { sessionID: string }, { message }: { message: Fields }) => {
			const turn = await payload(sessionID, "UserPromptSubmit");
			const start = { ...turn, hook_event_name: turn.agent_id ? "SubagentStart" : "SessionStart" };
			const said: Answer[] = [];
			if (!here.has(sessionID)) {
				here.add(sessionID);
				said.push(await hooks.inOrder({ ...start, source: begins.get(sessionID) ?? "resume" }));
			}
			if (!turn.agent_id) said.push(await hooks.inOrder(turn));
			const text = said.map((answer) => answer.additionalContext).filter(Boolean).join("\n\n");
			if (text) words.set(message.id, text);
			for (const { systemMessage: shown } of said)
				if (shown) await client.tui.showToast({ body: { message: shown, variant: "warning" } });
		}),

		// Not kept in the conversation: OpenCode would make a title of it, and publish it where that is shared.
		"experimental.chat.messages.transform": quietly(async (_: object, { messages }: { messages: Message[] }) => {
			if (own) own.timeout = WAIT_MS; // the server has been started
			for (const { info, parts } of messages) {
				const [text, id] = [words.get(info.id), `${parts.at(-1)?.id}s`];
				if (text) parts.push({ id, sessionID: info.sessionID, messageID: info.id, type: "text", synthetic: true, text });
			}
		}),

		async "tool.execute.before"(of: Call, { args }: { args: Fields }) {
			let denial: string | undefined;
			await quietly(async () => {
				const asked = await call("PreToolUse", { ...of, args });
				const answer = await hooks.run({ ...asked, takes_input: true });
				if (answer.updatedInput) Object.assign(args, answer.updatedInput); // OpenCode asks its user afterwards
				if (answer.permissionDecision === "deny") denial = answer.permissionDecisionReason;
				else if (answer.additionalContext) notices.set(of.callID, answer.additionalContext);
				if (!own || !asked.tool_name?.startsWith(`mcp__${ownName}__`)) return;
				// OpenCode does not name the calling session to servers. Said too early it would show, to the model as well.
				for (const end = Date.now() + NOTED_MS; !noted.delete(of.callID) && Date.now() < end; ) await pause(5);
				args._session = asked.session_id;
			})();
			if (denial) throw new Error(denial);
		},

		"tool.execute.after": quietly(async (of: Call, result: Fields) => {
			const after = await hooks.run(await call("PostToolUse", of));
			const text = [notices.get(of.callID), after.additionalContext].filter(Boolean).join("\n");
			notices.delete(of.callID);
			if (text && Array.isArray(result.content)) result.content.push({ type: "text", text }); // of an MCP server
			else if (text) result.output = `${result.output}\n\n${text}`;
		}),

		"shell.env": quietly(async ({ sessionID }: { sessionID?: string }, { env }: { env: Fields }) => {
			if (sessionID) env[idVariable] = (await payload(sessionID, "")).session_id;
		}),

		dispose: quietly(async () => {
			await Promise.all([...here].map(ended));
		}),
	};
}

/** True if the server of a config's entry is another program than `swarm-mcp serve`. */
function isAnother({ command, url }: Fields): boolean {
	const words: string[] = [command ?? []].flat().map(String);
	return Boolean(url) || (words.length > 0 && !(words.includes("serve") && words.some((word) => RUNS_SWARM.test(word))));
}

function pause(milliseconds: number): Promise<void> {
	return new Promise((done) => setTimeout(done, milliseconds));
}

/** A handler that never fails: `swarm-mcp doctor` finds faults. */
function quietly<Given extends unknown[]>(handler: (...given: Given) => Promise<void>) {
	return (...given: Given) => handler(...given).catch(() => {});
}
