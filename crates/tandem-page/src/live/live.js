// Puts the parts that the server draws in their place, as they change. Keeps what a reader has
// opened, and never takes a sound away while it plays.
"use strict";
(() => {
  const main = document.querySelector("main");
  const waiting = new Map();

  const made = (html) => {
    const shell = document.createElement("template");
    shell.innerHTML = html;
    return shell.content.firstElementChild;
  };

  const playing = (part) => [...part.querySelectorAll("audio")].find((sound) => !sound.paused && !sound.ended);

  const replace = (old, html) => {
    const sound = playing(old);
    if (sound) {
      if (!waiting.has(old.id)) {
        const later = () => {
          const newest = waiting.get(old.id);
          waiting.delete(old.id);
          if (newest) replace(document.getElementById(old.id), newest);
        };
        sound.addEventListener("pause", later, { once: true });
      }
      waiting.set(old.id, html);
      return;
    }
    const part = made(html);
    const open = [...old.querySelectorAll("details")].map((one) => one.open);
    part.querySelectorAll("details").forEach((one, place) => { one.open = open[place] || false; });
    const scrolled = [...old.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    old.replaceWith(part);
    part.querySelectorAll(".scroll").forEach((one, place) => { one.scrollLeft = scrolled[place] || 0; });
  };

  const apply = ({ order, sections, parts }) => {
    for (const section of [...main.children]) {
      if (!order.includes(section.id)) section.remove();
    }
    order.forEach((id, place) => {
      const old = document.getElementById(id);
      const html = sections[id];
      if (old && html !== undefined) replace(old, html);
      else if (!old && html !== undefined) {
        const next = order.slice(place + 1).map((later) => document.getElementById(later)).find(Boolean);
        main.insertBefore(made(html), next || null);
      }
    });
    for (const html of parts) {
      const part = made(html);
      const old = document.getElementById(part.id);
      if (old) old.replaceWith(part);
    }
    document.documentElement.dataset.updates = Number(document.documentElement.dataset.updates || 0) + 1;
  };

  const news = new EventSource(document.body.dataset.events);
  news.addEventListener("parts", (event) => apply(JSON.parse(event.data)));
  news.addEventListener("error", () => {
    const state = document.getElementById("state");
    if (!state) return;
    state.className = "badge bad";
    state.textContent = document.body.dataset.lost;
  });
})();
