/**
 * A client in miniature: the plugin's hooks in its own process, and the MCP server below it. Arguments: the bundle, and
 * the client whose plugin it is. Requests and answers are lines of JSON.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

const [bundle, client] = process.argv.slice(2);
let server: ChildProcess | undefined;

async function answered({ start, stop, payload, large }: Record<string, any>): Promise<object> {
	if (start) {
		server = spawn("swarm-mcp", ["serve"], { stdio: ["pipe", "ignore", "ignore"] });
		return { pid: server.pid };
	}
	if (stop) {
		if (server && server.exitCode === null && server.signalCode === null) {
			const ended = new Promise((done) => server?.once("exit", done));
			server.kill(stop);
			await ended;
		}
		return {};
	}
	if (large) payload.tool_input.content = "x".repeat(large);
	const [cpu, began] = [process.cpuUsage(), performance.now()];
	const answer = await hooks.run(payload);
	const { user, system } = process.cpuUsage(cpu);
	return { answer, ms: performance.now() - began, own_ms: (user + system) / 1000 };
}

const { Hooks } = await import(`${bundle}/integrations/hooks.ts`);
const hooks = new Hooks(`${bundle}/integrations/${client}`);
console.log(JSON.stringify({ pid: process.pid }));
for await (const line of createInterface({ input: process.stdin }))
	answered(JSON.parse(line)).then((answer) => console.log(JSON.stringify({ ...answer, id: JSON.parse(line).id })));
