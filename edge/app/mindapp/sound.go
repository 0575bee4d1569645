package mindapp

import (
	"log/slog"
	"os"
	"strings"

	"kennel/edge/agent/health/faults"
	"kennel/edge/faultcode"
	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/sound"
	"kennel/edge/sound/sink"
	"kennel/edge/sound/voice"
	"kennel/infra/cli"
	"kennel/infra/logging"
)

// character is how robots sound.
const character = "vector"

// Sound configures the sounds of a robot: where it is heard, as the flag -sound says, with the voice of a synthesiser of this machine, as loud and in the language that the
// owner chose. A device that cannot be played on is fault 911 of a robot that has a loudspeaker (VEC-SND-13): it lives without
// it.
func Sound(root *os.Root, log *slog.Logger, to, synth string) (s mind.Sound, err error) {
	broken := make(chan struct{}, 1)
	tell := func() {
		select {
		case broken <- struct{}{}:
		default: // the mind knows
		}
	}
	s.Broken, s.Silent = broken, func() {
		if err := faults.Post(root, faultcode.Audio); err != nil {
			log.Error("fault not posted", "fault", faultcode.Audio, logging.Err, err)
		}
	}
	switch {
	case to == "none":
	case to == "device":
		path, args, err := sink.FindPlayer(mindlink.SoundRate)
		if err == nil {
			s.Sink, err = sink.NewProgram(log, path, args, func(err error) {
				if err != nil {
					log.Warn("loudspeaker does not play", logging.Err, err)
					tell()
				}
			})
		}
		if err != nil {
			s.Sink = nil // not a nil *Program
			log.Error("robot is not heard on this machine", logging.Err, err)
			tell()
		}
	case strings.HasSuffix(to, ".wav"):
		if s.Sink, err = sink.Create(to, mindlink.SoundRate); err != nil {
			return s, err
		}
	default:
		return s, cli.Usage("-sound %.80q: expected none, device or a file that ends with .wav", to)
	}
	if s.Character, err = voice.FindCharacter(character); err != nil {
		return s, err
	}
	s.Voice = func() (voice.Synthesizer, error) { return voice.Installed(synth) }
	s.Volume = Volume(root)
	s.Language = func() string { v, _ := read(root); return v.Settings.Locale }
	return s, nil
}

// Volume returns how loud the owner wants the robot, as the settings on its disk say; false: they say nothing.
func Volume(root *os.Root) func() (sound.Level, bool) {
	return func() (sound.Level, bool) {
		v, ok := read(root)
		if !ok || v.Settings.Volume == nil || *v.Settings.Volume < 0 || *v.Settings.Volume > int(sound.High) {
			return 0, false
		}
		return sound.Level(*v.Settings.Volume), true
	}
}
