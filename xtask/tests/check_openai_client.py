#!/usr/bin/env python3
"""Uses `tandem serve` with OpenAI's own Python client, as an application would.

    python3 -m venv venv && venv/bin/pip install openai
    tandem serve --checkpoint run --port 7880 &
    venv/bin/python xtask/tests/check_openai_client.py http://127.0.0.1:7880/v1

Last run with openai 3.49.0 and Python 3.11.7, November 2026. Not part of the test suite, which needs no Python. Exits with 1 if something differs.
"""
import io
import os
import sys
import wave

import openai


def main(base_url):
    # One attempt: a retry would hide an error.
    key = os.environ.get("OPENAI_API_KEY", "none")
    client = openai.OpenAI(base_url=base_url, api_key=key, max_retries=0)
    model = client.models.list().data[0].id
    assert client.models.retrieve(model).id == model
    ask = dict(model=model, voice="default")

    answer = client.audio.speech.create(input="Good morning.", response_format="wav", **ask)
    with wave.open(io.BytesIO(answer.content)) as sound:
        assert sound.getnframes() * 2 == len(answer.content) - 44
        print(f"wav: {sound.getnframes() / sound.getframerate():.2f} s at {sound.getframerate()} Hz")

    parts = []
    text = "One sentence. And another one. سلام دنیا!"
    with client.audio.speech.with_streaming_response.create(input=text, response_format="pcm", **ask) as stream:
        for part in stream.iter_bytes(chunk_size=4096):
            parts.append(part)
    print(f"pcm: {len(parts)} parts, {sum(map(len, parts)) / 48000:.2f} s")

    flac = client.audio.speech.create(input=text, response_format="flac", speed=1.5, extra_body={"seed": 3}, **ask)
    assert flac.content[:4] == b"fLaC"
    print(f"flac: {len(flac.content)} bytes")

    for changes, kind in [
        ({"voice": "nobody"}, openai.BadRequestError),
        ({"model": "nothing"}, openai.NotFoundError),
        ({"input": "..."}, openai.BadRequestError),
        ({"response_format": "mp3"}, openai.BadRequestError),
    ]:
        try:
            client.audio.speech.create(**{**ask, "input": "Hi.", **changes})
            raise AssertionError(f"{changes} was accepted")
        except kind as error:
            print(f"refused: {error.body['message']}")
    print(f"openai {openai.__version__}: all as expected")


if __name__ == "__main__":
    main(sys.argv[1])
