"use strict";
// Before anything is drawn: the theme chosen last time, so that the page does not flash.
(function () {
  let chosen = null;
  try {
    chosen = localStorage.getItem("sumbo-theme");
  } catch (error) {
    // Storage may be forbidden: then every visit starts with the system's theme.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
