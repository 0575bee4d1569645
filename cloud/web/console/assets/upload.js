// Uploads a release archive: the cloud wants its SHA-256 in the address, so the file is read twice.

const form = document.getElementById("upload"), bar = form.querySelector("progress"), said = form.querySelector("[role=status]"), problem = form.querySelector("[role=alert]");
const cancel = form.querySelector("[data-cancel]"), send = form.querySelector(".primary");
let request = null, run = 0; // run counts the uploads; one that was cancelled is not the last

// SHA-256 of a file in pieces; crypto.subtle wants all of it in memory.
const roots = (power, n) => {
  const out = [];
  for (let i = 2; out.length < n; i++) {
    let prime = true;
    for (let d = 2; d * d <= i; d++) if (i % d === 0) prime = false;
    if (prime) out.push(Math.floor((i ** power % 1) * 2 ** 32) >>> 0);
  }
  return out;
};
const K = new Int32Array(roots(1 / 3, 64)), H = roots(1 / 2, 8);

class Sum {
  h = new Int32Array(H);
  w = new Int32Array(64);
  rest = new Uint8Array(64);
  kept = 0;
  size = 0;

  add(b) {
    this.size += b.length;
    let at = 0;
    if (this.kept) {
      at = Math.min(64 - this.kept, b.length);
      this.rest.set(b.subarray(0, at), this.kept);
      if ((this.kept += at) < 64) return;
      this.block(this.rest, 0);
      this.kept = 0;
    }
    for (; at + 64 <= b.length; at += 64) this.block(b, at);
    this.rest.set(b.subarray(at), 0);
    this.kept = b.length - at;
  }

  block(b, at) {
    const { w, h } = this;
    for (let i = 0; i < 16; i++, at += 4) w[i] = b[at] << 24 | b[at + 1] << 16 | b[at + 2] << 8 | b[at + 3];
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15], y = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3) + ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10);
    }
    let a = h[0], c = h[1], d = h[2], e = h[3], f = h[4], g = h[5], i = h[6], j = h[7];
    for (let k = 0; k < 64; k++) {
      const t = j + ((f >>> 6 | f << 26) ^ (f >>> 11 | f << 21) ^ (f >>> 25 | f << 7)) + (f & g ^ ~f & i) + K[k] + w[k] | 0;
      const u = ((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) + (a & c ^ a & d ^ c & d) | 0;
      j = i; i = g; g = f; f = e + t | 0; e = d; d = c; c = a; a = t + u | 0;
    }
    h[0] += a; h[1] += c; h[2] += d; h[3] += e; h[4] += f; h[5] += g; h[6] += i; h[7] += j;
  }

  hex() {
    const bits = this.size * 8, end = new Uint8Array((this.kept < 56 ? 64 : 128) - this.kept);
    end[0] = 0x80;
    new DataView(end.buffer).setUint32(end.length - 8, Math.floor(bits / 2 ** 32));
    new DataView(end.buffer).setUint32(end.length - 4, bits >>> 0);
    this.add(end);
    return [...this.h].map((x) => (x >>> 0).toString(16).padStart(8, "0")).join("");
  }
}

async function sumOf(file, mine) {
  const sum = new Sum(), reader = file.stream().getReader();
  for (let last = Date.now(); ;) {
    const { done, value } = await reader.read();
    if (done) return sum.hex();
    sum.add(value);
    if (Date.now() - last < 50) continue;
    tell("Checking", sum.size / file.size);
    await new Promise((next) => setTimeout(next)); // the page stays alive
    last = Date.now();
    if (!mine()) return reader.cancel();
  }
}

function tell(what, share) {
  bar.value = share;
  const text = `${what}: ${Math.floor(100 * share)} %`;
  if (said.textContent !== text) said.textContent = text;
}

function over(text) {
  request = null;
  bar.hidden = cancel.hidden = true;
  send.disabled = false;
  said.textContent = "";
  problem.textContent = text;
  problem.hidden = !text;
}

function put(address, file) {
  return new Promise((resolve) => {
    request = new XMLHttpRequest();
    request.open("PUT", address);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.responseType = "json";
    request.upload.onprogress = (e) => tell(e.loaded < e.total ? "Uploading" : "Verifying", e.loaded / e.total);
    request.onload = () => {
      if (request.status < 300) return resolve("");
      const text = request.response?.error ?? request.statusText;
      resolve(`The release was refused: ${text}${/[.?]$/.test(text) ? "" : "."}`);
    };
    request.onerror = () => resolve("The connection broke before the release was stored. Upload it again.");
    request.onabort = () => resolve(null);
    request.send(file);
  });
}

form.hidden = false;
form.addEventListener("submit", async (e) => {
  e.preventDefault();
  const n = ++run, file = form.elements.file.files[0];
  over("");
  send.disabled = true;
  bar.hidden = cancel.hidden = false;
  try {
    const sum = await sumOf(file, () => n === run);
    if (n !== run) return;
    const query = new URLSearchParams();
    for (const name of ["notes", "version"]) if (form.elements[name].value.trim()) query.set(name, form.elements[name].value.trim());
    const text = await put(`/v1/releases/${encodeURIComponent(form.elements.species.value)}/archives/${sum}?${query}`, file);
    if (text === "") return location.assign("/releases?done=release-uploaded");
    if (n === run) over(text);
  } catch {
    if (n === run) over("The file cannot be read.");
  }
});
cancel.addEventListener("click", () => { run++; request?.abort(); over(""); send.focus(); });
addEventListener("beforeunload", (e) => { if (request && request.readyState < 4) e.preventDefault(); });
