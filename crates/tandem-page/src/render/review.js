// Writes the decisions of a review into a file that the browser saves.
(() => {
  const review = document.querySelector(".review");
  const articles = [...review.querySelectorAll("article")];
  const output = review.querySelector("output");
  const line = (article) => {
    const chosen = article.querySelector("input:checked");
    if (!chosen) return [];
    const text = article.querySelector("textarea").value.replace(/\s+/g, " ").trim();
    return [[article.dataset.id, chosen.value, chosen.value === "fix" ? text : ""].join("\t")];
  };
  const lines = () => articles.flatMap(line);
  const count = () => { output.textContent = lines().length + " / " + articles.length; };
  for (const article of articles) {
    // A changed text is a decision to fix it.
    article.querySelector("textarea").addEventListener("input", () => {
      article.querySelector('input[value="fix"]').checked = true;
      count();
    });
    article.addEventListener("change", count);
  }
  review.querySelector("button").addEventListener("click", () => {
    const text = "id\tdecision\ttext\n" + lines().map((line) => line + "\n").join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/tab-separated-values" }));
    link.download = review.dataset.file;
    link.click();
    URL.revokeObjectURL(link.href);
  });
  count();
})();
