// Applies the chosen theme before anything is painted. The app keeps the choice; without one the system decides.
try {
  const theme = localStorage.getItem("toolshelf.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // No storage, no choice.
}
