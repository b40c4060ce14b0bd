// The choice between the system's theme, light and dark. It is kept in a cookie, so that the server draws
// the next page in the right colours from the start.

const YEAR = 365 * 24 * 3600;

function choose(theme) {
  const root = document.documentElement;
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  document.querySelector('meta[name="color-scheme"]').content = theme || "light dark";
  document.cookie = `theme=${theme}; path=/; max-age=${theme ? YEAR : 0}; samesite=lax`;
  for (const button of document.querySelectorAll("[data-theme-choice]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeChoice === theme));
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-theme-choice]");
  if (button) choose(button.dataset.themeChoice);
});
