package lifeos

import (
	"kennel/edge/body/pleo/format"
)

// commands is the motion command that is active, and the one behind it. A command is one of motions or of sounds by the key of its entries (PLEO-CMD-01).
type commands struct {
	handle, last int32
	id           int32
	file         *format.Command
	own          *bundle
	loops        int32 // left after this one
	motion       int32
	next         *pendingCommand
}

type pendingCommand struct {
	handle, id, loops int32
	file              *format.Command
	own               *bundle
}

// loadCommand returns a command by its id.
func (s *System) loadCommand(id int32, own *bundle) (*format.Command, error) {
	r, err := s.numbered(format.Commands, id, own)
	if err != nil {
		return nil, err
	}
	return format.ReadCommand(r.data)
}

// choose returns the resource of one of the entries whose conditions hold, at random; 0: none does (PLEO-CMD-02).
func (s *System) choose(c *format.Command, key uint16) int32 {
	var fit []int32
	for _, e := range c.Entries {
		resource, holds := int32(0), true
		for _, t := range e {
			if t.ID == key && t.Type == format.TagValue {
				resource = int32(t.Value)
				continue
			}
			v, want := s.properties.values[Property(t.ID)], int32(int16(t.Value))
			switch t.Type {
			case format.TagValue:
				holds = holds && v == want
			case format.TagMin:
				holds = holds && v > want
			case format.TagMax:
				holds = holds && v < want
			}
		}
		if holds && resource != 0 {
			fit = append(fit, resource)
		}
	}
	if len(fit) == 0 {
		return 0
	}
	return fit[s.rand.IntN(len(fit))]
}

// soundCommand plays one of the sounds of a command (PLEO-CMD-05).
func (s *System) soundCommand(id int32, interrupt bool, own *bundle) int32 {
	c, err := s.loadCommand(id, own)
	if err == nil {
		var key uint16
		if key, err = c.Plays(); err == nil && key != format.PropertySound {
			s.log(Warning, LogSound, "command %s plays motions", c.Name)
			return soundInvalid
		}
	}
	if err != nil {
		s.log(Warning, LogSound, "sound command %#x: %v", id, err)
		return soundInvalid
	}
	sound := s.choose(c, format.PropertySound)
	if sound == 0 {
		return soundInvalid
	}
	r, err := s.numbered(format.Sounds, sound, own)
	if err != nil {
		s.log(Warning, LogSound, "command %s: %v", c.Name, err)
		return soundInvalid
	}
	return s.playSound(r, interrupt)
}

// addCommand begins a motion command now, or when the active one is done (PLEO-CMD-03). It returns a handle; 0: there is no such command.
func (s *System) addCommand(id, loops int32, now bool, own *bundle) int32 {
	file, err := s.loadCommand(id, own)
	if err == nil {
		var key uint16
		if key, err = file.Plays(); err == nil && key != format.PropertyMotion {
			s.log(Warning, LogAnim, "command %s plays sounds", file.Name)
			return 0
		}
	}
	if err != nil {
		s.log(Warning, LogAnim, "command %#x: %v", id, err)
		return 0
	}
	c := &s.commands
	if c.last++; c.last > 0xFFF {
		c.last = 1
	}
	next := &pendingCommand{c.last, id, loops, file, own}
	if now {
		c.stop(s)
	}
	if c.file != nil {
		c.next = next
		s.SetProperty(PropCommandPending, id)
		return next.handle
	}
	s.beginCommand(next)
	return next.handle
}

// beginCommand chooses a motion of the command and plays it.
func (s *System) beginCommand(p *pendingCommand) {
	c := &s.commands
	c.handle, c.id, c.file, c.own, c.loops = p.handle, p.id, p.file, p.own, max(p.loops, 1)-1
	s.SetProperty(PropCommand, p.id)
	s.commandMotion()
}

// commandMotion plays the next motion of the active command, and ends the command if none fits.
func (s *System) commandMotion() {
	c := &s.commands
	c.motion = motionInvalid
	if id := s.choose(c.file, format.PropertyMotion); id != 0 {
		r, err := s.numbered(format.Motions, id, c.own)
		if err != nil {
			s.log(Warning, LogAnim, "command %s: %v", c.file.Name, err)
		} else {
			c.motion = s.playMotion(r)
		}
	}
	status := int32(statusPlaying)
	if c.loops > 0 {
		status = statusLooping
	}
	if c.motion == motionInvalid {
		s.endCommand()
		return
	}
	s.SetProperty(PropCommandStatus, status)
}

// endCommand marks the active command as done, and begins the pending one.
func (s *System) endCommand() {
	c := &s.commands
	next := c.next
	*c = commands{last: c.last}
	s.SetProperty(PropCommand, 0)
	s.SetProperty(PropCommandStatus, statusDone)
	s.SetProperty(PropCommandPending, 0)
	if next != nil {
		s.beginCommand(next)
	}
}

// stop takes the active and the pending command away (PLEO-CMD-04).
func (c *commands) stop(s *System) {
	if c.file != nil {
		s.stopMotions(c.motion)
	}
	*c = commands{last: c.last}
	s.SetProperty(PropCommand, 0)
	s.SetProperty(PropCommandStatus, statusNone)
	s.SetProperty(PropCommandPending, 0)
}

// stepCommands continues the active command when its motion has ended.
func (s *System) stepCommands() {
	c := &s.commands
	if c.file == nil || s.motionPlaying(c.motion) {
		return
	}
	if c.loops > 0 {
		c.loops--
		s.commandMotion()
		return
	}
	s.endCommand()
}

// commandPlaying reports whether the active or pending command has this handle or id.
func (s *System) commandPlaying(which int32) bool {
	c := &s.commands
	return c.file != nil && (which == c.handle || which == c.id) || c.next != nil && (which == c.next.handle || which == c.next.id)
}

// removeCommand takes a command away.
func (s *System) removeCommand(which int32) bool {
	c := &s.commands
	if c.next != nil && (which == c.next.handle || which == c.next.id) {
		c.next = nil
		s.SetProperty(PropCommandPending, 0)
		return true
	}
	if !s.commandPlaying(which) {
		return false
	}
	s.stopMotions(c.motion)
	s.endCommand()
	return true
}
