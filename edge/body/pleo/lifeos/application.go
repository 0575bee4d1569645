package lifeos

import (
	"kennel/edge/body/pleo/format"
)

// application is the sensor and main script that run, and where they come from.
type application struct {
	loaded bool
	drive  int // -1: loaded by a script, by its path
	// closing says that the power goes off when all scripts have closed.
	closing bool
}

// boot runs the startup script, and then the application (PLEO-APP-01). The application is one unit: both its scripts come from the first drive that has one of
// them.
func (s *System) boot() {
	if r, err := s.find(format.Scripts, s.cfg.Profile.Startup()); err == nil {
		s.exec(VMUser, r)
	}
	for i := range s.drives {
		if s.loadFrom(i) {
			return
		}
	}
	s.log(Info, LogApplication, "no application found")
}

// The configurations of applications, and what they are from power-on (PLEO-XAPI-09).
const (
	appWaitForInit = 1 + iota // main begins when init of the sensor script has ended
	appAutoLoad               // the application of a card begins when the card is inserted
	appRunInit                // init is called
)

var appDefaults = map[int32]int32{appAutoLoad: 1, appRunInit: 1}

// appConfig returns a configuration of applications.
func (s *System) appConfig(what int32) int32 {
	if v, set := s.host.app[what]; set {
		return v
	}
	return appDefaults[what]
}

// appScripts are the scripts of an application and their machines (PLEO-APP-10, PLEO-VM-05).
var appScripts = [...]struct {
	vm   VM
	name string
}{{VMSensor, "sensors"}, {VMMain, "main"}}

// loadFrom loads the application of a drive, and reports whether it has one.
func (s *System) loadFrom(i int) bool {
	found := false
	for _, a := range appScripts {
		r, err := s.find(format.Scripts, s.drives[i].letter+":"+a.name)
		if err != nil {
			continue
		}
		if !found {
			s.unloadApp()
		}
		found = true
		s.exec(a.vm, r)
	}
	if found {
		s.app = application{loaded: true, drive: i}
		s.log(Info, LogApplication, "application on drive %s: loaded", s.drives[i].letter)
	}
	return found
}

// unloadApp closes the scripts of the application.
func (s *System) unloadApp() {
	if s.app.loaded {
		s.log(Info, LogApplication, "application unloaded")
	}
	s.app = application{}
	for vm := VMSensor; vm <= VMAux; vm++ {
		s.unload(vm)
	}
}

// Insert puts a card into the slot: its startup script and its application begin (PLEO-APP-02).
func (s *System) Insert(card Storage) {
	s.mount(0, card)
	s.log(Info, LogIO, "card inserted")
	if r, err := s.find(format.Scripts, "a:"+s.cfg.Profile.Startup()); err == nil {
		s.exec(VMUser, r)
	}
	if s.appConfig(appAutoLoad) != 0 {
		s.loadFrom(0)
	}
}

// Eject takes the card out: the application that came from it closes, and the one of the dataflash begins. Properties keep their values (PLEO-APP-02).
func (s *System) Eject() {
	s.files.closeDrive(&s.drives[0])
	s.mount(0, nil)
	s.log(Info, LogIO, "card removed")
	if s.machines[VMUser].phase != vacant && s.machines[VMUser].drive == 0 {
		s.unload(VMUser)
	}
	if s.app.loaded && s.app.drive == 0 {
		s.unloadApp()
		if s.appConfig(appAutoLoad) != 0 {
			s.loadFrom(1)
		}
	}
}

// shutdown lets all scripts close, and then switches the power off (part of PLEO-SEN-02).
func (s *System) shutdown(why string) {
	if s.app.closing {
		return
	}
	s.log(Fatal, LogApplication, "power off: %s", why)
	s.unloadApp()
	s.unload(VMUser)
	s.app.closing = true
}

// stepPower switches off when all scripts have closed, or a reading asks for it.
func (s *System) stepPower() {
	if s.app.closing {
		for vm := VMSensor; vm < vmMax; vm++ {
			if s.machines[vm].phase != vacant {
				return
			}
		}
		s.writePlog()
		s.power = Off
		return
	}
	if s.now%sensorTick == 0 {
		s.checkPower()
	}
}
