// Leads the browser's part of signing in with a passkey (pages /login, /my/login) and of adding one (pages /me, /my/account). Without it they work with
// passwords.

const problem = document.getElementById("passkey-problem");

function say(text) {
  problem.textContent = text;
  problem.hidden = !text;
}

// Bytes travel as base64 in its form for addresses, without padding.
const unpack = (s) => Uint8Array.from(atob(s.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const pack = (b) => btoa(String.fromCharCode(...new Uint8Array(b))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const unpackIDs = (list) => list?.map((c) => ({ ...c, id: unpack(c.id) }));

async function ask(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), redirect: "error" });
  const said = answer.headers.get("Content-Type")?.startsWith("application/json") ? await answer.json() : {};
  if (answer.ok) return said;
  throw new Refused(said.error ?? "The server gave an unexpected answer. Try again in a moment");
}

class Refused extends Error {}

// words says what went wrong: what the server said, or what the browser's names for it mean.
function words(err) {
  if (err instanceof Refused) {
    const s = err.message.charAt(0).toUpperCase() + err.message.slice(1);
    return /[.?]$/.test(s) ? s : s + ".";
  }
  switch (err.name) {
    case "NotAllowedError": case "AbortError": return "No passkey was used: you cancelled, it took too long, or this device has none for this site.";
    case "InvalidStateError": return "This device already has a passkey for this site.";
    case "SecurityError": return "Passkeys do not work at this address.";
    case "NotSupportedError": case "ConstraintError": return "This device does not support passkeys.";
    case "TypeError": return "The server is not responding. Try again in a moment.";
  }
  return "That did not work. Try again, or sign in another way.";
}

// during runs work while nothing else can be pressed, and says what went wrong.
async function during(button, work) {
  say("");
  button.disabled = true;
  try {
    await work();
  } catch (err) {
    say(words(err));
  } finally {
    button.disabled = false;
  }
}

const signIn = document.getElementById("passkey-login");
const add = document.getElementById("passkey-add");

if (window.PublicKeyCredential) {
  if (signIn) signIn.hidden = false;
  if (add) add.hidden = false;
  document.getElementById("passkey-none")?.remove();
}

signIn?.addEventListener("click", () => during(signIn, async () => {
  const { ceremony, options } = await ask("/v1/login/passkey/begin", {});
  const o = options.publicKey;
  const c = await navigator.credentials.get({ publicKey: { ...o, challenge: unpack(o.challenge), allowCredentials: unpackIDs(o.allowCredentials) } });
  const r = c.response;
  await ask("/v1/login/passkey", { ceremony, cookie: true, credential: {
    id: c.id, rawId: pack(c.rawId), type: c.type, clientExtensionResults: c.getClientExtensionResults(),
    response: { clientDataJSON: pack(r.clientDataJSON), authenticatorData: pack(r.authenticatorData), signature: pack(r.signature),
      ...(r.userHandle && { userHandle: pack(r.userHandle) }) },
  } });
  location.assign(signIn.dataset.next); // checked by the server
}));

add?.addEventListener("submit", (e) => {
  e.preventDefault();
  during(add.querySelector("button"), async () => {
    const form = new FormData(add);
    const { ceremony, options } = await ask("/v1/me/passkeys/begin", { password: form.get("password") });
    const o = options.publicKey;
    const c = await navigator.credentials.create({ publicKey: { ...o, challenge: unpack(o.challenge), user: { ...o.user, id: unpack(o.user.id) },
      excludeCredentials: unpackIDs(o.excludeCredentials) } });
    const r = c.response;
    await ask("/v1/me/passkeys", { ceremony, name: form.get("name"), credential: {
      id: c.id, rawId: pack(c.rawId), type: c.type, clientExtensionResults: c.getClientExtensionResults(),
      response: { clientDataJSON: pack(r.clientDataJSON), attestationObject: pack(r.attestationObject), transports: r.getTransports?.() ?? [] },
    } });
    location.assign(add.dataset.next);
  });
});
