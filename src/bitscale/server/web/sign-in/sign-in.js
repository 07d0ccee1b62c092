// Trades a key for a cookie, then goes to the page that was asked for.
const form = document.getElementById("sign-in");
const problem = document.getElementById("problem");

function next() {
  const wanted = new URLSearchParams(location.search).get("next") || "/";
  const address = new URL(wanted, location.origin);
  return address.origin === location.origin ? address.pathname + address.search + address.hash : "/";
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.textContent = "";
  try {
    const answer = await fetch("/v1/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ key: document.getElementById("key").value.trim() }),
    });
    if (answer.ok) location.assign(next());
    else problem.textContent = (await answer.json()).error.message;
  } catch {
    problem.textContent = "The service does not answer. Try again.";
  }
});
