/**
 * Asks the checker of this client for a hook's answer, in place of a process (swarm_mcp/checker has the protocol). The
 * checker is a process of the swarm's MCP server, which this client or one above it has started. Any fault counts as no
 * answer.
 */
import { constants } from "node:fs";
import { lstat, open, readFile, readdir, stat, type FileHandle } from "node:fs/promises";
import { connect } from "node:net";

const RELEASE = "0.1.0"; // of this plugin; a checker of another one does not answer
const EVENTS = ["pre_tool_use", "post_tool_use", "turn", "subagent"];
const ANCESTORS = 8; // processes between a client and its plugin or server, and the client
const BEGIN_MS = 40; // for a busy checker to begin
const CHECK_MS = 2_190; // for an answer before a tool: a check may wait two seconds for another session's write
const EVENT_MS = 990; // at any other event
const LATE_MS = 10; // for an answer that is there when its time is over
const HEAD = 10; // characters before an answer: its exit status and its length, hexadecimal
const LONGEST = 16 * 1024 * 1024; // bytes of an answer
const LONGEST_NOTES = 64 * 1024; // bytes
// Of files in the state folder: a pipe or a link that an agent has put in a file's place keeps nobody waiting.
const SAFELY = constants.O_NOFOLLOW | constants.O_NONBLOCK;

export type Environment = Record<string, string | undefined>;
/** `text`: the hook's output. Without it a process has to run the hook, alone if the checker was asked, or is not there. */
export type Outcome = { text?: string; isAsked: boolean; triedNs?: string };
type Said = { text?: string; why: string };
type Process = { pid: number; name: string }; // its name has its start, too: pids are used again

let above: Process[] | undefined; // this process and those above it
let trusted = ""; // path and mark of the socket whose listener is known

/** Ask for the answer of a client's hook at an event, with this input; wait no longer than so long. */
export async function ask(
	[client, event]: [string, string],
	environment: Environment,
	payload: string,
	longestMs: number,
): Promise<Outcome> {
	const triedNs = `${Date.now()}000000`;
	const entries = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
	const state = stateFolder(environment);
	if (process.platform !== "linux" || !state || !EVENTS.includes(event) || entries.some((entry) => entry.includes("\0"))) return { isAsked: false };
	const request = (leftMs: number) => {
		// The time that is left: Bun does not tell the time of the system's clock.
		const words = [RELEASE, client, event, process.pid, `+${Math.floor(leftMs * 1e6)}`, process.cwd(), ...entries];
		const [head, body] = [words.map((word) => `${word}\0`).join(""), payload].map((part) => Buffer.from(part));
		const sizes = [head, body].map((part) => part.length.toString(16).padStart(8, "0")).join("");
		return Buffer.concat([Buffer.from(sizes), head, body]);
	};
	const limitMs = Math.min(event === "pre_tool_use" ? CHECK_MS : EVENT_MS, longestMs);
	let stop = () => {};
	const late = new Promise<Outcome>((done) => {
		stop = alarm(limitMs + 2 * LATE_MS, () => done({ isAsked: true, triedNs })); // a disk may not answer either
	});
	const asked = async (): Promise<Outcome> => {
		if (event === "post_tool_use" && !(await isAwaited(state))) return { text: "", isAsked: true };
		const { text, why } = await answerOf(`${state}/checkers`, request, limitMs);
		return { text, isAsked: true, ...(why === "not answered" && { triedNs }) };
	};
	return Promise.race([asked(), late]).finally(stop);
}

/** The answer of the checker with a socket in this folder, or why there is none. */
async function answerOf(folder: string, request: (leftMs: number) => Buffer, limitMs: number): Promise<Said> {
	let said: Said = { why: "none" };
	try {
		const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
		try {
			const { uid, mode } = await handle.stat();
			const isPrivate = uid === process.geteuid?.() && !(mode & 0o077);
			const socket = isPrivate ? await socketIn(`/proc/self/fd/${handle.fd}`) : undefined;
			if (socket) said = await exchange(socket, request, limitMs);
		} finally {
			await handle.close();
		}
	} catch {
		// no folder, or a process that has just ended
	}
	if (said.text === undefined) await note(folder, said.why).catch(() => {});
	return said;
}

/** The state folder, as swarm_hook_core/state.py has it; empty where only that can tell. */
function stateFolder({ SWARM_STATE_DIR: given, XDG_STATE_HOME: state, HOME: home }: Environment): string {
	const base = given || state || home || "";
	if (!base.startsWith("/") || base !== base.trim()) return "";
	if (given) return base;
	const usual = process.platform === "darwin" ? "/Library/Application Support" : "/.local/state";
	return `${base}${state ? "" : usual}/swarm-mcp`;
}

/** Mark the end of the last call that this agent had open, for swarm_hook_core/traces (`Trail.leave`). */
export async function markEnd(environment: Environment, session: string, agent: string): Promise<void> {
	const mark = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;
	const path = `${stateFolder(environment)}/ended/${process.pid}`;
	await withFile(path, mark, (file) => file.write(`${session}\0${agent}`)).catch(() => {}); // no folder: nobody reads it
}

/** False if neither this call nor a word for its session is waited for. */
async function isAwaited(state: string): Promise<boolean> {
	const folders = ["watched", "unheard", "awaited"].map((name) => stat(`${state}/${name}`).then(() => true, () => false));
	return (await Promise.all(folders)).includes(true);
}

/** The socket of the nearest process above that has a checker, as path and mark; undefined without one. */
async function socketIn(folder: string): Promise<[string, string] | undefined> {
	above ??= await ancestors(process.pid);
	for (const client of above) {
		const path = `${folder}/${client.name}`;
		const mark = await lstat(path, { bigint: true }).then(markOf, () => "");
		if (!mark) continue;
		if (trusted !== `${client.name} ${mark}` && !(await isServed(path, mark, client).catch(() => false))) continue;
		trusted = `${client.name} ${mark}`;
		return [path, mark];
	}
	return undefined;
}

/** This process and those above it, the nearest first. */
async function ancestors(pid: number): Promise<Process[]> {
	const found: Process[] = [];
	while (pid > 1 && found.length < ANCESTORS) {
		const text = await readFile(`/proc/${pid}/stat`, "latin1");
		const words = text.slice(text.lastIndexOf(")") + 2).split(" ");
		found.push({ pid, name: `${pid}-${words[19]}` });
		pid = Number(words[1]);
	}
	return found;
}

/** True if a server below `client` has made the socket, which then has it open: anybody can put one in its place. */
async function isServed(path: string, mark: string, client: Process): Promise<boolean> {
	const server = Number(await withFile(`${path}.lock`, constants.O_RDONLY, (file) => file.readFile("latin1")));
	const words = (await readFile(`/proc/${server}/cmdline`, "latin1")).split("\0");
	const { uid } = await stat(`/proc/${server}`);
	if (uid !== process.geteuid?.() || !(words.includes("serve") || words.includes("acp"))) return false;
	if (!(await ancestors(server)).some(({ name }) => name === client.name)) return false;
	const handles = (await readdir(`/proc/${server}/fd`)).map((name) => `/proc/${server}/fd/${name}`);
	const marks = handles.map((handle) => stat(handle, { bigint: true }).then(markOf, () => ""));
	return (await Promise.all(marks)).includes(mark);
}

function markOf(file: { dev: bigint; ino: bigint; ctimeNs: bigint }): string {
	return `${file.dev} ${file.ino} ${file.ctimeNs}`;
}

/** The answer of the checker at this socket, or why there is none. */
function exchange(
	[path, mark]: [string, string],
	request: (leftMs: number) => Buffer,
	limitMs: number,
): Promise<Said> {
	return new Promise((done) => {
		const endMs = performance.now() + limitMs;
		const socket = connect({ path });
		let why = "busy"; // or it has not begun yet
		let got = Buffer.alloc(0);
		let hasBegun = false;
		const end = (text?: string) => {
			stopBegin();
			stopAll();
			socket.destroy();
			done({ text, why });
		};
		const stopBegin = alarm(BEGIN_MS, end);
		const stopAll = alarm(limitMs, end);
		const send = async () => {
			if (markOf(await lstat(path, { bigint: true })) !== mark) throw new Error("another socket has its place");
			const bytes = request(endMs - performance.now());
			if (socket.destroyed) return;
			why = "not answered";
			socket.write(bytes);
		};
		socket.on("error", () => end());
		socket.on("close", () => end());
		socket.on("data", (part: Buffer) => {
			got = Buffer.concat([got, part]);
			if (!hasBegun) {
				stopBegin();
				hasBegun = true;
				if (got[0] !== "B".charCodeAt(0)) return end();
				got = got.subarray(1);
				send().catch(() => end());
			}
			if (got.length < HEAD) return;
			const length = Number.parseInt(got.subarray(2, HEAD).toString("latin1"), 16);
			if (!(length <= LONGEST)) return end();
			if (got.length >= HEAD + length) end(got.subarray(HEAD, HEAD + length).toString("utf8"));
		});
	});
}

/** Call `ring` after so long. Where this process was kept from running, what it has received comes first. */
function alarm(ms: number, ring: () => void): () => void {
	let timer = setTimeout(() => {
		timer = setTimeout(() => ring(), LATE_MS);
	}, ms);
	return () => clearTimeout(timer);
}

/** Note why no checker has answered, for `swarm-mcp doctor`: only where checkers have made the file. */
async function note(folder: string, why: string): Promise<void> {
	await withFile(`${folder}/alone`, constants.O_WRONLY | constants.O_APPEND, async (file) => {
		if ((await file.stat()).size < LONGEST_NOTES) await file.write(`${Math.floor(Date.now() / 1000)} ${why}\n`);
	});
}

async function withFile<Found>(path: string, how: number, use: (file: FileHandle) => Promise<Found>): Promise<Found> {
	const file = await open(path, how | SAFELY, 0o600);
	try {
		return await use(file);
	} finally {
		await file.close();
	}
}
