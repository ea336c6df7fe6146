"use strict";
// The page is whole without this script; it keeps the page current.
(() => {
  const main = document.querySelector("main[data-live]");
  const lost = document.getElementById("lost");

  // Changes an element into another one of the same kind, in place: focus, selection and scrolling stay.
  function morph(old, fresh) {
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !(name === "open" && old.matches("details"))) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    const had = [...old.childNodes], has = [...fresh.childNodes];
    has.forEach((one, at) => {
      const before = had[at];
      if (!before) old.append(one);
      else if (before.nodeType !== one.nodeType || before.nodeName !== one.nodeName || before.id !== one.id) before.replaceWith(one);
      else if (one.nodeType === Node.ELEMENT_NODE) morph(before, one);
      else if (before.nodeValue !== one.nodeValue) before.nodeValue = one.nodeValue;
    });
    had.slice(has.length).forEach((one) => one.remove());
  }

  function show(html) {
    const region = document.getElementById("live");
    const made = new DOMParser().parseFromString(`<div id="live">${html}</div>`, "text/html");
    morph(region, made.body.firstElementChild);
  }

  // A gateway that answers 503 ends an EventSource for good: a new one is opened once the page can be had again.
  async function again(address) {
    try {
      const answer = await fetch(location.href, { redirect: "manual", cache: "no-store" });
      if (answer.type === "opaqueredirect") location.reload();
      else if (answer.ok) return follow(address);
    } catch { /* still away */ }
    setTimeout(again, 1000, address);
  }

  let away = 0;
  function follow(address) {
    const events = new EventSource(address);
    events.onopen = () => { away = 0; lost.hidden = true; };
    events.onerror = () => {
      away = away || Date.now();
      if (events.readyState === EventSource.CLOSED) again(address);
    };
    events.onmessage = (event) => { show(JSON.parse(event.data)); document.body.dataset.updated = Date.now(); };
    events.addEventListener("lines", (event) => append(JSON.parse(event.data)));
    events.addEventListener("gone", () => {
      events.close();
      document.body.replaceChildren();
      location.replace("/console/login?gone");
    });
  }

  setInterval(() => {
    if (!away || Date.now() - away < 2000) return;
    lost.hidden = false;
    lost.textContent = `The connection to the head node is lost for ${Math.round((Date.now() - away) / 1000)} s: what is shown is old.`;
  }, 1000);

  // Lines of a log: at the end, as long as the reader is there.
  function append(html) {
    const log = document.getElementById("log");
    log.querySelectorAll(".note:first-child:last-child").forEach((one) => one.remove());
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    const made = new DOMParser().parseFromString(html, "text/html");
    log.append(...made.body.childNodes);
    while (log.childElementCount > 2000) log.firstElementChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  // The chat: one answer at a time, as it comes, and only as text.
  const chat = document.getElementById("chat");
  if (chat) {
    const turns = document.getElementById("turns"), halt = document.getElementById("halt");
    const field = chat.elements.prompt, send = chat.querySelector("[type=submit]"), said = [];
    let busy = null;
    chat.querySelector(".hint").hidden = false;

    function turn(who, kind) {
      const box = document.createElement("div"), name = document.createElement("b"), body = document.createElement("p");
      box.className = `turn ${kind}`;
      name.textContent = who;
      box.append(name, body);
      turns.append(box);
      return body;
    }

    function add(body, text) {
      body.append(text);
      if (turns.scrollHeight - turns.scrollTop - turns.clientHeight < 80) turns.scrollTop = turns.scrollHeight;
    }

    async function lines(answer, take) {
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (let part; !(part = await reader.read()).done;) {
        const found = (rest + part.value).split("\n");
        rest = found.pop();
        found.forEach((line) => take(...JSON.parse(line)));
      }
    }

    async function ask() {
      const name = location.pathname.split("/")[3] || chat.action.split("/").pop();
      const body = turn(name, "answer");
      let thought = null, text = "", ended = false;
      const note = (words, kind) => { const box = document.createElement("span"); box.className = kind; box.textContent = words; body.parentNode.append(box); };
      busy = new AbortController();
      try {
        const form = new URLSearchParams({ token: chat.elements.token.value, messages: JSON.stringify(said) });
        const answer = await fetch(`${chat.action}/say`, { method: "POST", body: form, signal: busy.signal, redirect: "manual" });
        if (answer.type === "opaqueredirect") { location.reload(); return; }
        if (!answer.ok) throw new Error(await answer.text());
        await lines(answer, (kind, words) => {
          if (kind === "text") { text += words; add(body, words); }
          else if (kind === "thought") {
            if (!thought) { thought = document.createElement("p"); thought.className = "thought"; body.before(thought); }
            add(thought, words);
          } else { ended = true; note(words, kind); }
        });
        if (!ended) note("the connection was lost before the end", "error");
      } catch (error) { note(error.name === "AbortError" ? "stopped" : String(error.message), "error"); }
      if (text) said.push({ role: "assistant", content: text }); else said.pop();
      turns.scrollTop = turns.scrollHeight;
      busy = null; send.disabled = false; halt.hidden = true;
    }

    chat.addEventListener("submit", (event) => {
      event.preventDefault();
      const words = field.value.trim();
      if (!words || busy) return;
      said.push({ role: "user", content: words });
      add(turn("you", "mine"), words);
      field.value = ""; send.disabled = true; halt.hidden = false;
      ask();
    });
    halt.addEventListener("click", () => { if (busy) busy.abort(); field.focus(); });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); chat.requestSubmit(); }
    });
    field.focus();
  }

  const log = document.getElementById("log");
  if (log) log.scrollTop = log.scrollHeight;
  if (main) follow(main.dataset.live);
})();
