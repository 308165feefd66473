// Search over an index that is a script, so that it works from files, too; and the folded navigation on narrow screens.
(() => {
  const input = document.getElementById("search");
  const found = document.getElementById("found");
  const count = document.getElementById("count");
  const hits = document.getElementById("hits");
  const HITS_MAX = 20;
  let loading = null;

  function load() {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = "search-index.js";
      script.onload = resolve;
      script.onerror = reject;
      document.head.append(script);
    });
    return loading;
  }

  // Every word must occur. Words of headings and titles weigh more than words of the text, and the
  // whole query in a heading weighs most.
  function score(words, [page, heading, , text]) {
    const head = `${page} ${heading}`.toLowerCase();
    const body = text.toLowerCase();
    let total = head.includes(words.join(" ")) ? 20 : 0;
    for (const word of words) {
      const inHead = head.includes(word);
      if (!inHead && !body.includes(word)) return 0;
      total += inHead ? 10 : Math.min(body.split(word).length - 1, 5);
    }
    return total;
  }

  // About 170 characters around the first word that occurs, cut between words.
  function excerpt(words, text) {
    const at = Math.max(0, text.toLowerCase().indexOf(words.find((word) => text.toLowerCase().includes(word)) ?? ""));
    const first = at > 60 ? text.indexOf(" ", at - 60) + 1 : 0;
    const end = first + 170 < text.length ? text.lastIndexOf(" ", first + 170) : text.length;
    return (first ? "... " : "") + text.slice(first, Math.max(end, at)) + (end < text.length ? " ..." : "");
  }

  async function search() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.hidden = !words.length;
    if (!words.length) return;
    await load();
    const ranked = window.searchIndex
      .map((row) => [score(words, row), row])
      .filter(([points]) => points)
      .sort(([a], [b]) => b - a);
    count.textContent = ranked.length === 1 ? "1 section" : `${ranked.length} sections`;
    hits.replaceChildren(
      ...ranked.slice(0, HITS_MAX).map(([, [page, heading, address, text]]) => {
        const item = document.createElement("li");
        const link = document.createElement("a");
        const title = document.createElement("strong");
        const line = document.createElement("span");
        link.href = address;
        title.textContent = heading ? `${page}: ${heading}` : page;
        line.textContent = excerpt(words, text);
        link.append(title, line);
        item.append(link);
        return item;
      }),
    );
  }

  input.addEventListener("input", search);
  input.form.addEventListener("submit", (event) => {
    event.preventDefault();
    hits.querySelector("a")?.click();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") found.hidden = true;
    if (event.key === "/" && document.activeElement === document.body) {
      event.preventDefault();
      input.focus();
    }
  });
  document.addEventListener("click", (event) => {
    if (!input.form.contains(event.target) || event.target.closest("#hits a")) found.hidden = true;
  });
  const groups = document.querySelector("nav.groups");
  const current = groups.querySelector("[aria-current]");
  if (current && current.offsetTop > groups.clientHeight - 60) groups.scrollTop = current.offsetTop - groups.clientHeight / 2;
  if (matchMedia("(max-width: 48rem)").matches) document.querySelector("nav.groups details").open = false;
})();
