"use strict";
// Keys: d, n, u choose a judgement; each of its reasons has a toggle key; a accepts the draft; Enter saves; z undoes;
// s skips; v folds the frames with the pages, ? the criteria.
(() => {
  const form = document.getElementById("judge");
  if (!form) return;
  const radios = [...form.querySelectorAll('input[name="judgement"]')];
  const radio = (name) => radios.find((one) => one.value === name);
  const chosen = () => (form.querySelector('input[name="judgement"]:checked') || {}).value;
  const boxes = (name) => [...form.querySelectorAll(`fieldset[data-for="${name}"] input[type="checkbox"]`)];
  const show = () => {
    for (const set of form.querySelectorAll("fieldset[data-for]")) {
      const active = set.dataset.for === chosen();
      set.hidden = !active;
      set.disabled = !active;
    }
    form.querySelector("#save").disabled = !chosen();
  };
  // Folded parts stay folded on the next pair.
  const folds = { v: document.getElementById("visitor"), "?": document.getElementById("criteria") };
  for (const fold of Object.values(folds)) {
    const before = sessionStorage.getItem(fold.id);
    if (before) fold.open = before === "open";
    fold.addEventListener("toggle", () => sessionStorage.setItem(fold.id, fold.open ? "open" : "folded"));
  }
  // A click into a frame would move the keyboard focus there: take it back.
  window.addEventListener("blur", () => setTimeout(() => {
    if (document.activeElement instanceof HTMLIFrameElement) document.activeElement.blur();
  }));
  form.addEventListener("change", show);
  form.addEventListener("submit", () => { form.dataset.sent = "yes"; });
  show();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
    const key = event.key.toLowerCase();
    const choice = radios.find((one) => one.dataset.key === key);
    const box = boxes(chosen()).find((one) => one.dataset.key === key);
    if (choice) {
      choice.checked = true;
      show();
    } else if (box) {
      box.checked = !box.checked;
    } else if (folds[key]) {
      folds[key].open = !folds[key].open;
      folds[key].scrollIntoView({ block: "nearest" });
    } else if (key === "a") {
      const drafted = form.querySelector("input[data-draft]");
      if (!drafted) return;
      radio("correct").checked = true;
      drafted.checked = true;
      show();
    } else if (key === "enter" && chosen() && !form.dataset.sent) {
      if (event.target.closest && event.target.closest("a, summary, button")) return;
      form.requestSubmit();
    } else if (key === "z") {
      document.getElementById("undo").requestSubmit();
    } else if (key === "s") {
      document.getElementById("skip").click();
    } else {
      return;
    }
    event.preventDefault();
  });
  form.dataset.ready = "yes";
})();
