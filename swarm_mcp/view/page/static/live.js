// Asks for the page anew when something has changed; what is the same stays as it is, and so do focus and scrolling.
"use strict";
(() => {
  let main, status, shown = null, focused = null, scrolled = [], missed = false, pressed = false, late = false;
  let copied = null, forgetting = 0;  // the command that was copied last, for two seconds
  const links = () => [...main.querySelectorAll("a")];
  const regions = () => [...main.querySelectorAll("[role=region]")];
  const say = (text) => { if (status.textContent !== text) status.textContent = text; };  // a screen reader reads changes
  const told = (word) => {
    if (word === "lost") say("not connected: swarm-mcp page has ended");
    if (word !== "changed") return;
    say("live");
    missed = document.hidden;  // a page that nobody sees asks once it is seen
    if (!missed) htmx.trigger(main, "changed");
  };
  // A link that is replaced between press and release is never followed: the page waits for the release.
  // This script runs before there is a link to press.
  addEventListener("pointerdown", () => { pressed = true; });
  for (const end of ["pointerup", "pointercancel"])
    addEventListener(end, () => setTimeout(() => { pressed = false; if (late) { late = false; told("changed"); } }));
  document.addEventListener("visibilitychange", () => { if (missed && !document.hidden) told("changed"); });
  const sayCopied = () => {  // by the command: a button that was pressed may have been replaced since
    for (const button of document.querySelectorAll("button.copy"))
      button.querySelector("span").textContent = button.previousElementSibling.textContent === copied ? "Copied" : "";
  };
  addEventListener("click", (event) => {  // the command stands before its button; without a clipboard it stays selectable
    const button = event.target.closest("button.copy"), command = button && button.previousElementSibling;
    if (!button || !navigator.clipboard) return;
    navigator.clipboard.writeText(command.textContent).then(() => {
      copied = command.textContent;
      sayCopied();
      clearTimeout(forgetting);
      forgetting = setTimeout(() => { copied = null; sayCopied(); }, 2000);
    }, () => getSelection().selectAllChildren(command));
  });
  addEventListener("DOMContentLoaded", () => {
    main = document.getElementById("main");
    status = document.getElementById("live");
    main.addEventListener("htmx:beforeSwap", (event) => {
      if (pressed) { late = true; event.detail.shouldSwap = false; return; }
      if (event.detail.xhr.responseText === shown) { event.detail.shouldSwap = false; return; }
      shown = event.detail.xhr.responseText;
      const at = document.activeElement, href = main.contains(at) && at.getAttribute("href");
      focused = null;
      if (href) focused = ["href", href, links().filter((a) => a.getAttribute("href") === href).indexOf(at)];
      else if (main.contains(at) && at.getAttribute("aria-label")) focused = ["aria-label", at.getAttribute("aria-label"), 0];
      scrolled = regions().filter((one) => one.scrollLeft).map((one) => [one.getAttribute("aria-label"), one.scrollLeft]);
    });
    main.addEventListener("htmx:afterSwap", () => {
      sayCopied();
      for (const [name, left] of scrolled)
        for (const one of regions()) if (one.getAttribute("aria-label") === name) one.scrollLeft = left;
      if (!focused) return;
      const [name, value, index] = focused;
      const same = [...main.querySelectorAll(`[${name}]`)].filter((one) => one.getAttribute(name) === value);
      (same[index] || same[0] || main).focus({ preventScroll: true });
    });
    if (window.SharedWorker) {
      const worker = new SharedWorker("/static/live-worker.js");
      worker.port.onmessage = (event) => told(event.data);
      worker.port.start();
      addEventListener("pagehide", () => worker.port.postMessage("closed"));
    } else {
      const events = new EventSource("/events");
      events.addEventListener("changed", () => told("changed"));
      events.addEventListener("error", () => told("lost"));
    }
  });
})();
