"use strict";
/* Ask every two seconds which sections have changed, and put new ones in their place. */
(() => {
  const EVERY = 2000;
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const main = document.getElementById("main");
  const silent = document.getElementById("silent");
  const section = (name) => all("[data-section]").find((each) => each.dataset.section === name);
  let versions = null;

  /* Times: how long ago, or how long still. */
  const words = (seconds) => {
    const [minutes, hours, days] = [60, 3600, 86400].map((unit) => Math.floor(seconds / unit));
    if (days >= 2) return `${days} days`;
    if (hours >= 2) return `${hours} hours`;
    if (minutes >= 1) return `${minutes}:${String(Math.floor(seconds % 60)).padStart(2, "0")} min`;
    return `${Math.floor(seconds)} s`;
  };
  const tell = () => {
    const now = Date.now() / 1000;
    all("time[data-ago]").forEach((each) => (each.textContent = `${words(Math.max(0, now - each.dataset.ago))} ago`));
    all("time[data-left]").forEach((each) => (each.textContent = words(Math.max(0, each.dataset.left - now))));
  };

  /* What a reader has done to a section, by place: it is done to the new one, too. */
  const inPlace = (selector) => (before, after, copy) => {
    const [from, to] = [all(selector, before), all(selector, after)];
    from.forEach((each, index) => to[index] && copy(each, to[index]));
  };
  const KEPT = [
    [inPlace("details"), (from, to) => {
      if (!("chosen" in from.dataset)) return;
      to.dataset.chosen = "";
      to.open = from.open;
    }],
    [inPlace("th[aria-sort]"), (from, to) => {
      const clicks = { ascending: 1, descending: 2 }[from.ariaSort] || 0;
      for (let click = 0; click < clicks; click++) to.querySelector("button").click();
    }],
    [inPlace("select"), (from, to) => {
      if (from.value === to.value || ![...to.options].some((option) => option.value === from.value)) return;
      to.value = from.value;
      to.dispatchEvent(new Event("change"));
    }],
    [inPlace(".zoom button"), (from, to) => from.ariaPressed === "true" && to.click()],
    [inPlace(".box, pre"), (from, to) => to.scrollTo(from.scrollLeft, from.scrollTop)],
  ];
  document.addEventListener("click", (event) => {
    const opened = event.target.closest("summary");
    if (opened) opened.parentElement.dataset.chosen = "";
  });
  const hidden = (root) => all('.legend button[aria-pressed="false"]', root).map((button) => button.textContent);
  const keep = (before, after) => {
    KEPT.forEach(([places, copy]) => places(before, after, copy));
    const names = hidden(before);
    all(".legend button[aria-pressed]", after).forEach((button) => names.includes(button.textContent) && button.click());
    const inFocus = all("a, button, select, summary, [tabindex]", before).indexOf(document.activeElement);
    return () => all("a, button, select, summary, [tabindex]", after)[inFocus]?.focus({ preventScroll: true });
  };

  /* Put a section in its place. What the reader looks at stays where it is on the screen. */
  const replace = (name, text) => {
    const old = section(name);
    const holder = document.createElement("template");
    holder.innerHTML = text;
    const fresh = holder.content.firstElementChild;
    const seen = all("[data-section] > section, [data-section] > section > *", main).find(
      (each) => each.getBoundingClientRect().bottom > 60 && !(old && old.contains(each)),
    );
    const top = seen?.getBoundingClientRect().top;
    const inside = old && old.getBoundingClientRect().top < 60;
    if (!old) {
      main.append(fresh);
      fresh.dispatchEvent(new Event("replaced", { bubbles: true }));
      return;
    }
    const at = window.scrollY;
    old.after(fresh);
    fresh.dispatchEvent(new Event("replaced", { bubbles: true }));
    const focus = keep(old, fresh);
    old.remove();
    focus();
    const visible = inside && fresh.getBoundingClientRect().bottom > 60;
    window.scrollTo({ top: visible || !seen ? at : window.scrollY + seen.getBoundingClientRect().top - top, behavior: "instant" });
  };

  const order = (names) => {
    const wanted = names.map(section).filter((each) => each && main.contains(each));
    wanted.forEach((each, index) => {
      if (main.children[index] !== each) main.insertBefore(each, main.children[index] || null);
    });
  };

  const get = async (path) => {
    const response = await fetch(path, { cache: "no-store" });
    if (!response.ok) throw new Error(response.status);
    return response;
  };

  const look = async () => {
    const now = await (await get("/versions")).json();
    if (versions === null) versions = Object.fromEntries(all("[data-section]").map((each) => [each.dataset.section, ""]));
    for (const name of Object.keys(now)) {
      if (versions[name] === now[name]) continue;
      replace(name, await (await get(`/section?name=${encodeURIComponent(name)}`)).text());
      versions[name] = now[name];
    }
    for (const name of Object.keys(versions)) {
      if (name in now) continue;
      section(name)?.remove();
      delete versions[name];
    }
    order(Object.keys(now));
    tell();
  };

  const again = async () => {
    try {
      if (!document.hidden) await look();
      silent.hidden = true;
    } catch {
      silent.hidden = false;
    }
    setTimeout(again, EVERY);
  };
  tell();
  setInterval(tell, 1000);
  again();
})();
