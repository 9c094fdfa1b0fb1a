// One stream of events for all pages of this browser: it lets itself have six connections to a server, not more.
"use strict";
const ports = new Set();
const events = new EventSource("/events");
let state = "waiting";
const tell = (word) => { state = word; for (const port of ports) port.postMessage(word); };
events.addEventListener("changed", () => tell("changed"));
events.addEventListener("error", () => tell("lost"));
onconnect = (event) => {
  const port = event.ports[0];
  ports.add(port);
  port.onmessage = () => ports.delete(port);
  port.postMessage(state);
};
