#!/bin/sh
# Makes the recordings in this directory. Needs sox, flac and ffmpeg (Debian 12 packages).
set -eu
cd "$(dirname "$0")"
tone="synth 0.5 sine 440 vol 0.5"
sox -D -n -r 22050 -c 1 -b 16 tone_22k_16.flac $tone
sox -D -n -r 48000 -c 2 -b 24 tone_48k_24_stereo.flac $tone
sox -D -n -r 44100 -c 1 -b 16 tone.wav $tone
ffmpeg -v error -y -i tone.wav -c:a libmp3lame -b:a 64k -map_metadata -1 -id3v2_version 0 tone_44k.mp3
ffmpeg -v error -y -i tone.wav -c:a libmp3lame -b:a 64k -write_xing 0 -id3v2_version 0 tone_44k_untagged.mp3
ffmpeg -v error -y -i tone.wav -c:a libmp3lame -b:a 64k -metadata title="A tone" tone_44k_id3.mp3
ffmpeg -v error -y -i tone.wav -c:a libvorbis -q:a 3 -page_duration 50000 -map_metadata -1 tone_44k.ogg
ffmpeg -v error -y -i tone.wav -c:a libopus -b:a 24k -map_metadata -1 tone.opus
sox -D tone.wav -r 8000 -e mu-law tone_8k_mulaw.wav
rm tone.wav
# Three hours of nothing in a few kilobytes.
sox -D -n -r 8000 -c 1 -b 16 -t raw - trim 0 10800 |
    flac -s -f --force-raw-format --endian=little --sign=signed --channels=1 --bps=16 \
        --sample-rate=8000 --lax --blocksize=65535 --no-seektable --no-padding -o hours_of_silence.flac -
