"use strict";
// Keys: c, i, u choose; digits toggle the reasons of what is chosen; a takes the draft; Enter saves; z undoes; s skips.
(() => {
  const form = document.getElementById("judge");
  if (!form) return;
  const choices = { c: "correct", i: "incorrect", u: "undecided" };
  const radio = (name) => form.querySelector(`input[name="judgement"][value="${name}"]`);
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
  form.addEventListener("change", show);
  form.addEventListener("submit", () => { form.dataset.sent = "yes"; });
  show();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
    const key = event.key.toLowerCase();
    if (choices[key]) {
      radio(choices[key]).checked = true;
      show();
    } else if (/^[0-9]$/.test(key) && chosen()) {
      const box = boxes(chosen())[(Number(key) + 9) % 10];
      if (box) box.checked = !box.checked;
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
