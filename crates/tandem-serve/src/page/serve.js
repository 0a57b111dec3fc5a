// Asks for speech as PCM (16 bit, mono, 24 kHz), plays each sentence as it arrives, and offers the whole as WAV.
"use strict";
(() => {
  const RATE = 24000;
  const part = (id) => document.getElementById(id);
  const words = document.body.dataset;
  const number = (seconds) => seconds.toLocaleString(document.documentElement.lang, { maximumFractionDigits: 2 });
  let running = null;

  const say = (state, text) => {
    document.documentElement.dataset.state = state;
    part("status").className = state === "failed" ? "bad" : "";
    part("status").textContent = text;
  };

  const headers = () => {
    const token = part("token") ? part("token").value : "";
    return token ? { authorization: `Bearer ${token}` } : {};
  };

  const refused = async (answer) => {
    const body = await answer.json().catch(() => null);
    return new Error(body && body.error ? body.error.message : `${answer.status}`);
  };

  const voices = async () => {
    const answer = await fetch("/voices", { headers: headers() });
    if (!answer.ok) throw await refused(answer);
    const list = (await answer.json()).voices;
    const chosen = part("voice").value;
    part("voice").replaceChildren(...list.map(({ name }) => new Option(name, name, false, name === chosen)));
  };

  const wav = (pieces, bytes) => {
    const head = new DataView(new ArrayBuffer(44));
    const letters = (at, text) => [...text].forEach((letter, place) => head.setUint8(at + place, letter.charCodeAt(0)));
    letters(0, "RIFF"); head.setUint32(4, 36 + bytes, true); letters(8, "WAVEfmt ");
    head.setUint32(16, 16, true); head.setUint16(20, 1, true); head.setUint16(22, 1, true);
    head.setUint32(24, RATE, true); head.setUint32(28, 2 * RATE, true);
    head.setUint16(32, 2, true); head.setUint16(34, 16, true);
    letters(36, "data"); head.setUint32(40, bytes, true);
    return new Blob([head, ...pieces], { type: "audio/wav" });
  };

  // Plays pieces one after the other, without a gap while they arrive in time.
  const player = () => {
    const context = new AudioContext();
    let next = 0;
    return {
      context,
      play(bytes) {
        const levels = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        const count = bytes.byteLength / 2;
        if (!count) return;
        const sound = context.createBuffer(1, count, RATE);
        const channel = sound.getChannelData(0);
        for (let place = 0; place < count; place += 1) channel[place] = levels.getInt16(2 * place, true) / 32768;
        const source = context.createBufferSource();
        source.buffer = sound;
        source.connect(context.destination);
        next = Math.max(next, context.currentTime + 0.02);
        source.start(next);
        next += sound.duration;
      },
    };
  };

  const speak = async (stop) => {
    const began = performance.now();
    const sounds = player();
    running = { stop, sounds };
    say("waiting", words.waiting);
    if (!part("voice").options.length) await voices();
    const request = {
      model: words.model,
      input: part("text").value,
      voice: part("voice").value,
      speed: Number(part("speed").value),
      response_format: "pcm",
    };
    const answer = await fetch("/v1/audio/speech", {
      method: "POST",
      headers: { ...headers(), "content-type": "application/json" },
      body: JSON.stringify(request),
      signal: stop.signal,
    });
    if (!answer.ok) throw await refused(answer);
    const reader = answer.body.getReader();
    const pieces = [];
    let bytes = 0;
    let odd = new Uint8Array(0);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (!bytes) say("playing", words.playing.replace("{}", number((performance.now() - began) / 1000)));
      pieces.push(value);
      bytes += value.byteLength;
      // A sample may be split between two pieces.
      const joined = new Uint8Array(odd.byteLength + value.byteLength);
      joined.set(odd);
      joined.set(value, odd.byteLength);
      const even = joined.byteLength - (joined.byteLength % 2);
      sounds.play(joined.subarray(0, even));
      odd = joined.slice(even);
    }
    const address = URL.createObjectURL(wav(pieces, bytes));
    part("result").src = address;
    part("result").hidden = false;
    part("save").href = address;
    part("save").hidden = false;
    say("done", words.done.replace("{}", number(bytes / 2 / RATE)));
  };

  part("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running) await running.sounds.context.close();
    const stop = new AbortController();
    part("speak").disabled = true;
    part("stop").disabled = false;
    try {
      await speak(stop);
    } catch (error) {
      if (stop.signal.aborted) say("stopped", words.stopped);
      else say("failed", error instanceof TypeError ? words.lost : error.message);
    }
    part("speak").disabled = false;
  });

  part("stop").addEventListener("click", () => {
    if (!running) return;
    running.stop.abort();
    running.sounds.context.close();
    running = null;
    part("stop").disabled = true;
    part("speak").disabled = false;
    say("stopped", words.stopped);
  });

  if (part("token")) part("token").addEventListener("change", () => voices().catch((error) => say("failed", error.message)));
  else voices().then(() => say("ready", "")).catch(() => say("failed", words.lost));
})();
