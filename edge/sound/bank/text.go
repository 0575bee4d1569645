package bank

import (
	"slices"
	"strings"

	"kennel/edge/sound"
	"kennel/edge/sound/synth"
)

// The limits of an event.
const (
	maxActions = 100
	maxChoices = 64
)

// thresholds reads a line: switch GROUP by PARAMETER STATE VALUE STATE ... VALUE STATE.
func (k *Bank) thresholds(words []synth.Word) error {
	if len(words) < 7 || len(words)%2 == 0 || words[2].Text != "by" {
		return words[0].Errorf("expected switch GROUP by PARAMETER STATE VALUE STATE, found %d words", len(words))
	}
	group, err := k.id(words[1])
	if err != nil {
		return err
	}
	t := &Thresholds{}
	if t.Parameter, err = k.id(words[3]); err != nil {
		return err
	}
	for i, w := range words[4:] {
		if i%2 == 1 {
			v, err := w.Float("a value", w.Text, -1e6, 1e6)
			if err != nil {
				return err
			}
			if n := len(t.Values); n > 0 && v <= t.Values[n-1] {
				return w.Errorf("expected a value above %g, found %g", t.Values[n-1], v)
			}
			t.Values = append(t.Values, v)
			continue
		}
		state, err := k.id(w)
		if err != nil {
			return err
		}
		t.States = append(t.States, state)
	}
	if k.Switches[group] != nil {
		return words[1].Errorf("expected one line for the switch %s, found another", words[1].Text)
	}
	k.Switches[group] = t
	return nil
}

// event reads an event and returns the lines after it.
func (k *Bank) event(lines [][]synth.Word) ([][]synth.Word, error) {
	head := lines[0]
	if len(head) < 2 || len(head) > 3 || len(head) == 3 && head[2].Text != "lively" {
		return nil, head[0].Errorf("expected event NAME, or event NAME lively, found %d words", len(head))
	}
	id, err := k.id(head[1])
	if err != nil {
		return nil, err
	}
	if k.Events[id] != nil {
		return nil, head[1].Errorf("expected a name that is free, found %s again", head[1].Text)
	}
	e := &Event{Name: head[1].Text, Lively: len(head) == 3}
	var when Condition
	rest := lines[1:]
	for ; len(rest) > 0; rest = rest[1:] {
		words := rest[0]
		verb := slices.Index(verbs, words[0].Text)
		switch {
		case words[0].Text == "always" && len(words) == 1:
			when = Condition{}
		case words[0].Text == "when":
			if when, err = k.condition(words); err != nil {
				return nil, err
			}
		case verb >= 0:
			a := Action{Do: Verb(verb), When: when}
			if err := k.action(&a, words); err != nil {
				return nil, err
			}
			if e.Actions = append(e.Actions, a); len(e.Actions) > maxActions {
				return nil, words[0].Errorf("expected at most %d actions, found more", maxActions)
			}
		default:
			verb = -2
		}
		if verb == -2 {
			break
		}
	}
	if len(e.Actions) == 0 {
		return nil, head[1].Errorf("expected actions of the event %s (%s), found none", e.Name, strings.Join(verbs, ", "))
	}
	k.Events[id] = e
	return rest, nil
}

// condition reads a line: when GROUP STATE, or when PARAMETER FROM..BELOW.
func (k *Bank) condition(words []synth.Word) (c Condition, err error) {
	if len(words) != 3 {
		return c, words[0].Errorf("expected when GROUP STATE or when PARAMETER FROM..BELOW, found %d words", len(words))
	}
	id, err := k.id(words[1])
	if err != nil {
		return c, err
	}
	from, below, ok := strings.Cut(words[2].Text, "..")
	if !ok {
		c.Group = id
		c.State, err = k.id(words[2])
		return c, err
	}
	c.Parameter = id
	if c.From, err = words[2].Float("a value", from, -1e6, 1e6); err == nil {
		c.Below, err = words[2].Float("a value", below, c.From, 1e6)
	}
	return c, err
}

// action reads the words after a verb.
func (k *Bank) action(a *Action, words []synth.Word) (err error) {
	verb, rest := words[0], words[1:]
	if over, ok := strings.CutPrefix(words[len(words)-1].Text, "over="); ok && (a.Do == Set || a.Do == Stop) {
		if a.Over, err = words[len(words)-1].Float("over", over, 0, 60_000); err != nil {
			return err
		}
		rest = rest[:len(rest)-1]
	}
	switch n := len(rest); {
	case a.Do == Play || a.Do == With:
		return k.choices(a, verb, rest)
	case a.Do == Wait && n == 1:
		a.Value, err = rest[0].Float("a time in ms", rest[0].Text, 0, 60_000)
	case a.Do == Volume && n == 1:
		a.Value, err = rest[0].Float("a volume", rest[0].Text, 0, 4)
	case a.Do == Set && n == 2:
		if a.Target, err = k.id(rest[0]); err == nil {
			a.Value, err = rest[1].Float("a value", rest[1].Text, -1e6, 1e6)
		}
	case a.Do == Stop && n == 1 && rest[0].Text != "all":
		a.Target, err = k.id(rest[0])
	case a.Do == Stop && n == 1, (a.Do == Mute || a.Do == Unmute) && n == 0:
	default:
		err = verb.Errorf("expected wait MS, volume FACTOR, set PARAMETER VALUE, stop NAME or stop all, mute or unmute, found %s and %d words", verb.Text, n)
	}
	return err
}

// choices reads NAME gain= pitch= | NAME ...
func (k *Bank) choices(a *Action, verb synth.Word, words []synth.Word) (err error) {
	open := true
	for _, w := range words {
		key, value, keyed := strings.Cut(w.Text, "=")
		switch {
		case w.Text == "|" && !open:
			open = true
			continue
		case open && w.Text != "|":
			c := Choice{Gain: 1, Pitch: 1, Speed: 1, Loops: 1}
			if c.Sound, err = k.id(w); err != nil {
				return err
			}
			if a.Choices = append(a.Choices, c); len(a.Choices) > maxChoices {
				return w.Errorf("expected at most %d choices, found more", maxChoices)
			}
			open = false
			continue
		case open || !keyed:
			return w.Errorf("expected the name of a sound, a value by name or |, found %.40q", w.Text)
		}
		c := &a.Choices[len(a.Choices)-1]
		switch key {
		case "gain":
			c.Gain, err = w.Float(key, value, 0.001, 4)
		case "pitch":
			c.Pitch, err = w.Float(key, value, sound.MinPitch, sound.MaxPitch)
		case "speed":
			c.Speed, err = w.Float(key, value, sound.MinSpeed, sound.MaxSpeed)
		case "vary":
			c.Vary, err = w.Float(key, value, 0, 1200)
		case "loops":
			c.Loops = sound.Forever
			if value != "forever" {
				n := 0.0
				n, err = w.Float(key, value, 1, 10_000)
				c.Loops = int(n)
			}
		default:
			err = w.Errorf("expected gain, pitch, speed, vary or loops, found %.40q", key)
		}
		if err != nil {
			return err
		}
	}
	if open {
		return verb.Errorf("expected the name of a sound, found the end of the line")
	}
	return nil
}
