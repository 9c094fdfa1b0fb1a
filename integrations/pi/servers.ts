/**
 * MCP servers for pi: before 0.99 it had no MCP of its own. Their tools become pi's, as `mcp__<server>__<tool>`.
 *
 * The swarm's own server is in `mcp.json` beside this file. A run that `swarm-mcp worker run` or `dispatch` started names a
 * private file with more in SWARM_PI_SERVERS, in the same format, and its entries win.
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { Http, Stdio, type Connection, type Spec } from "./wire.ts";

const MORE = "SWARM_PI_SERVERS";
const OWN = "swarm"; // the name of swarm's server in those; that of the plugin may have another beside a user's own
const LISTED_MS = 10_000; // how long the first prompt waits for tools at most
const PROTOCOL = "2025-06-18";
const LONGEST_NAME = 64; // of a tool, as model APIs take it

type Tool = { name: string; title?: string; description?: string; inputSchema?: object };
type Block = { type: string; text?: string; data?: string; mimeType?: string };

export class Servers {
	/** Settled once the tools are known, or are not going to be. */
	ready: Promise<unknown> = Promise.resolve();
	private running: Server[] = [];

	constructor(
		private readonly pi: ExtensionAPI,
		private readonly folder: string,
	) {}

	/** Start them in `cwd`; `session` tells the session that calls their tools. */
	start(cwd: string, session: () => string): void {
		const more = specsIn(process.env[MORE]);
		const specs = { ...(OWN in more ? {} : this.own()), ...more };
		this.running = Object.entries(specs).map(([name, spec]) => new Server(name, spec, cwd, session));
		let timer: NodeJS.Timeout | undefined;
		const enough = new Promise((done) => {
			timer = setTimeout(done, LISTED_MS);
		});
		const listed = Promise.all(this.running.map((server) => server.offerTools(this.pi)));
		this.ready = Promise.race([listed, enough]).finally(() => clearTimeout(timer));
	}

	stop(): void {
		for (const server of this.running) server.stop();
		this.running = [];
	}

	private own(): Record<string, Spec> {
		const root = resolve(this.folder, "..", "..");
		const specs = specsIn(join(this.folder, "mcp.json"));
		for (const spec of Object.values(specs)) spec.args = spec.args?.map((word) => word.replace("${SWARM_PLUGIN_ROOT}", root));
		return specs;
	}
}

class Server {
	private connection: Promise<Connection> | undefined;
	private stopped = false;

	constructor(
		private readonly name: string,
		private readonly spec: Spec,
		private readonly cwd: string,
		private readonly session: () => string,
	) {}

	/** Make this server's tools known to pi. A server out of reach offers no tools. */
	async offerTools(pi: ExtensionAPI): Promise<void> {
		try {
			const connection = await this.connected();
			let cursor: string | undefined;
			do {
				const page = await connection.ask("tools/list", cursor ? { cursor } : {});
				for (const tool of page.tools as Tool[]) if (!this.stopped) this.offer(pi, tool);
				cursor = page.nextCursor as string | undefined;
			} while (cursor);
		} catch {
			// `swarm-mcp doctor` and the greeting report faults
		}
	}

	stop(): void {
		this.stopped = true;
		this.connection?.then((connection) => connection.close()).catch(() => {});
	}

	private offer(pi: ExtensionAPI, tool: Tool): void {
		const plain = (text: string) => text.replace(/[^A-Za-z0-9_-]/g, "_");
		pi.registerTool({
			name: plain(`mcp__${this.name}__${tool.name}`).slice(0, LONGEST_NAME),
			label: tool.title ?? tool.name,
			description: tool.description ?? tool.title ?? tool.name,
			parameters: (tool.inputSchema ?? { type: "object", properties: {} }) as never,
			execute: async (_id, input, signal) => {
				const connection = await this.connected();
				const asked = { name: tool.name, arguments: input, _meta: { sessionId: this.session() } };
				const result = await connection.ask("tools/call", asked, signal);
				const content = ((result.content ?? []) as Block[]).map(shown);
				if (!content.length && result.structuredContent)
					content.push({ type: "text", text: JSON.stringify(result.structuredContent) });
				// pi takes a call for failed when it throws.
				if (result.isError) throw new Error(content.map((block) => block.text ?? "").join("\n") || "failed");
				return { content, details: {} } as never;
			},
		});
	}

	/** The connection, made at the first need, and anew where the server has ended. */
	private connected(): Promise<Connection> {
		if (this.stopped) return Promise.reject(new Error(`the MCP server ${this.name} has been stopped`));
		this.connection ??= this.connect().catch((error) => {
			this.connection = undefined;
			throw error;
		});
		return this.connection;
	}

	private async connect(): Promise<Connection> {
		const gone = () => {
			this.connection = undefined;
		};
		const connection = this.spec.url ? new Http(this.spec) : new Stdio(this.spec, this.cwd, gone);
		const clientInfo = { name: "pi", version: "swarm" };
		try {
			await connection.ask("initialize", { protocolVersion: PROTOCOL, capabilities: {}, clientInfo });
			await connection.tell("notifications/initialized");
		} catch (error) {
			connection.close();
			throw error;
		}
		if (this.stopped) connection.close();
		return connection;
	}
}

function shown(block: Block): Block {
	if (block.type === "text" || (block.type === "image" && block.data)) return block;
	return { type: "text", text: JSON.stringify(block) };
}

function specsIn(file: string | undefined): Record<string, Spec> {
	try {
		return file ? (JSON.parse(readFileSync(file, "utf8")).mcpServers ?? {}) : {};
	} catch {
		return {};
	}
}
