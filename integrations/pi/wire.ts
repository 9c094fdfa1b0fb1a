/** JSON-RPC to an MCP server, over a child's standard streams or over HTTP. */
import { spawn, type ChildProcess } from "node:child_process";

export type Spec = {
	command?: string;
	args?: string[];
	env?: Record<string, string>;
	cwd?: string;
	url?: string;
	headers?: Record<string, string>;
};
export type Result = Record<string, unknown>;
export interface Connection {
	/** The result. Throws the server's refusal, or an error if it has ended or `signal` says so. */
	ask(method: string, params: object, signal?: AbortSignal): Promise<Result>;
	tell(method: string, params?: object): Promise<void> | void;
	close(): void;
}
type Message = { id?: number | string; method?: string; result?: Result; error?: { message?: string } };

function resultOf(message: Message): Result {
	if (message.error) throw new Error(message.error.message ?? "the MCP server refused");
	return message.result ?? {};
}

/** A server that is our child. It ends with its standard input, so also when pi is killed. */
export class Stdio implements Connection {
	private readonly child: ChildProcess;
	private readonly waiting = new Map<number, { done: (message: Message) => void; failed: (error: Error) => void }>();
	private count = 0;
	private rest = "";

	constructor(spec: Spec, cwd: string, gone: () => void) {
		this.child = spawn(spec.command ?? "", spec.args ?? [], {
			cwd: spec.cwd || cwd,
			env: { ...process.env, ...spec.env },
			stdio: ["pipe", "pipe", "ignore"],
		});
		const ended = () => {
			gone();
			for (const { failed } of this.waiting.values()) failed(new Error("the MCP server has ended"));
			this.waiting.clear();
		};
		this.child.on("error", ended);
		this.child.on("exit", ended);
		this.child.stdin?.on("error", () => {});
		this.child.stdout?.setEncoding("utf8").on("data", (chunk: string) => this.take(chunk));
	}

	ask(method: string, params: object, signal?: AbortSignal): Promise<Result> {
		const id = ++this.count;
		return new Promise<Message>((done, failed) => {
			if (this.child.exitCode !== null || signal?.aborted) return failed(new Error("the MCP server was not asked"));
			this.waiting.set(id, { done, failed });
			signal?.addEventListener("abort", () => {
				if (!this.waiting.delete(id)) return;
				this.tell("notifications/cancelled", { requestId: id });
				failed(new Error("cancelled"));
			});
			this.send({ id, method, params });
		}).then(resultOf);
	}

	tell(method: string, params?: object): void {
		this.send({ method, params });
	}

	close(): void {
		this.child.stdin?.end();
		this.child.stdout?.destroy();
		this.child.kill(); // a call that waits for a peer would not look at its input
		this.child.unref();
	}

	private send(message: object): void {
		this.child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
	}

	private take(chunk: string): void {
		const lines = (this.rest + chunk).split("\n");
		this.rest = lines.pop() ?? "";
		for (const line of lines) {
			let message: Message;
			try {
				message = JSON.parse(line);
			} catch {
				continue;
			}
			if (message.method !== undefined) {
				if (message.id !== undefined) this.answer(message.id, message.method);
				continue;
			}
			const asked = this.waiting.get(message.id as number);
			this.waiting.delete(message.id as number);
			asked?.done(message);
		}
	}

	private answer(id: number | string, method: string): void {
		const unknown = { error: { code: -32601, message: `pi has no ${method}` } };
		this.send({ id, ...(method === "ping" ? { result: {} } : unknown) });
	}
}

/** A server behind an address (streamable HTTP): one POST for each message. */
export class Http implements Connection {
	private count = 0;
	private readonly headers: Record<string, string>;
	private readonly url: string;

	constructor(spec: Spec) {
		this.url = spec.url ?? "";
		this.headers = {
			...spec.headers,
			"content-type": "application/json",
			accept: "application/json, text/event-stream",
		};
	}

	async ask(method: string, params: object, signal?: AbortSignal): Promise<Result> {
		const id = ++this.count;
		const response = await this.post({ id, method, params }, signal);
		const text = await response.text();
		const isStream = (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
		const documents = isStream ? [...text.matchAll(/^data: ?(.*)$/gm)].map((found) => found[1]) : [text];
		for (const document of documents) {
			const message: Message = JSON.parse(document);
			if (message.id === id && message.method === undefined) return resultOf(message);
		}
		throw new Error(`the MCP server did not answer ${method}`);
	}

	async tell(method: string, params?: object): Promise<void> {
		await this.post({ method, params });
	}

	close(): void {
		const session = this.headers["mcp-session-id"];
		if (session) fetch(this.url, { method: "DELETE", headers: this.headers }).catch(() => {});
	}

	private async post(message: object, signal?: AbortSignal): Promise<Response> {
		const body = JSON.stringify({ jsonrpc: "2.0", ...message });
		const response = await fetch(this.url, { method: "POST", headers: this.headers, body, signal });
		if (!response.ok) throw new Error(`the MCP server answered ${response.status}`);
		const session = response.headers.get("mcp-session-id");
		if (session) this.headers["mcp-session-id"] = session;
		return response;
	}
}
