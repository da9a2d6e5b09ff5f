// Keys go to the console without a click first: textual-serve's page leaves the focus where it was.
window.addEventListener("load", () => {
  const focus = () => document.querySelector(".xterm-helper-textarea")?.focus();
  window.addEventListener("focus", focus);
  focus();
});
