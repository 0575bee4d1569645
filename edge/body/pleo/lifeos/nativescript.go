package lifeos

import (
	"slices"
	"strings"

	"kennel/edge/body/pleo/format"
)

// logged makes a native that logs its formatted arguments at a level.
func logged(l Level) func(*env) int32 {
	return func(e *env) int32 {
		e.s.log(l, LogScript, "%s", strings.TrimRight(e.format(0), "\n"))
		return 0
	}
}

func logNatives() []Native {
	return []Native{
		{"Log", "print(const string[])", func(e *env) int32 {
			e.s.print(e.text(0))
			return 0
		}},
		{"Log", "printf(const format[], {Float,Fixed,_}: ...)", func(e *env) int32 { // PLEO-MON-10
			e.s.print(e.format(0))
			return 0
		}},
		{"Log", "putchar(c)", func(e *env) int32 { e.s.print(string(rune(e.Arg(0)))); return 0 }},
		{"Log", "Debug(const format[], {Float,Fixed,_}: ...)", logged(Debug)},
		{"Log", "Info(const format[], {Float,Fixed,_}: ...)", logged(Info)},
		{"Log", "Warning(const format[], {Float,Fixed,_}: ...)", logged(Warning)},
		{"Log", "Error(const format[], {Float,Fixed,_}: ...)", logged(Error)},
		{"Log", "Message(type, const format[], {Float,Fixed,_}: ...)", func(e *env) int32 {
			e.s.log(Info, LogType(min(max(e.Arg(0), 0), int32(logCount)-1)), "%s", e.format(1))
			return 0
		}},
		{"Log", "log_enable(types)", func(e *env) int32 { e.s.logTypes |= uint32(e.Arg(0)); return 0 }},
		{"Log", "log_disable(types)", func(e *env) int32 { e.s.logTypes &^= uint32(e.Arg(0)); return 0 }},
	}
}

// print is the output of a script: each whole line is a message.
func (s *System) print(text string) {
	for line := range strings.Lines(text) {
		s.log(Info, LogScript, "%s", strings.TrimRight(line, "\n"))
	}
}

// execute runs a script by its name or id in a machine.
func (e *env) execute(r resource, err error, vm VM) int32 {
	if err != nil {
		e.s.log(Warning, LogVM, "run script: %v", err)
		return 0
	}
	return truth(e.s.exec(vm, r))
}

func (e *env) executeNamed(vm VM) int32 {
	r, err := e.s.find(format.Scripts, e.text(0))
	return e.execute(r, err, vm)
}

func (e *env) executeID(vm VM) int32 {
	r, err := e.s.numbered(format.Scripts, e.Arg(0), e.m.from)
	return e.execute(r, err, vm)
}

// maxWaits bounds the waits that scripts make, and the conditions of each.
const maxWaits = 32

func scriptNatives() []Native {
	return []Native{
		{"Script", "vm_exec(const string[], vm_name: vm = vm_aux)", func(e *env) int32 { return e.executeNamed(VM(e.Arg(1))) }},
		{"Script", "vm_exec_id(script_name: script, vm_name: vm = vm_aux)", func(e *env) int32 { return e.executeID(VM(e.Arg(1))) }},
		{"Script", "exec(const string[])", func(e *env) int32 { return e.executeNamed(VMAux) }},
		{"Script", "exec_id(script_name: script)", func(e *env) int32 { return e.executeID(VMAux) }},
		{"Script", "sensor_exec(const string[])", func(e *env) int32 { return e.executeNamed(VMSensor) }},
		{"Script", "sensor_exec_id(script_name: script)", func(e *env) int32 { return e.executeID(VMSensor) }},
		{"Script", "Wait: wait_new()", func(e *env) int32 {
			if len(e.s.waits) >= maxWaits {
				return 0
			}
			e.s.nextWait++
			e.s.waits[e.s.nextWait] = &wait{}
			return e.s.nextWait
		}},
		{"Script", "bool: wait_add_property(Wait: wait, {property_name, user_property_name}: property, value, compare_name: compare)", func(e *env) int32 {
			w := e.s.waits[e.Arg(0)]
			if w == nil || len(w.conditions) >= maxWaits || e.Arg(3) < compareEqual || e.Arg(3) > compareGreater {
				return 0
			}
			w.conditions = append(w.conditions, condition{Property(e.Arg(1)), e.Arg(2), e.Arg(3)})
			return 1
		}},
		{"Script", "vm_wait(Wait: wait, vm_name: vm = vm_aux)", func(e *env) int32 {
			w := e.s.waits[e.Arg(0)]
			delete(e.s.waits, e.Arg(0))
			if w == nil || len(w.conditions) == 0 {
				return 0
			}
			e.sleep(e.s.now, w)
			return 1
		}},
		{"Script", "yield()", func(e *env) int32 { e.sleep(e.s.now+minSleep, nil); return 0 }},
	}
}

// property makes a native that reads the property of its argument.
func getNative(e *env) int32 { return e.s.getProperty(Property(e.Arg(0))) }

func setNative(e *env) int32 { return e.s.SetProperty(Property(e.Arg(0)), e.Arg(1)) }

func reportNative(e *env) int32 {
	return truth(e.s.addReport(Property(e.Arg(0)), e.Arg(1), e.Arg(2)))
}

func propertyNatives() []Native {
	const p = "({property_name, user_property_name}: property"
	return []Native{
		{"Property", "property_get" + p + ")", getNative}, // PLEO-XAPI-04
		{"Property", "get_property" + p + ")", getNative},
		{"Property", "get" + p + ")", getNative},
		{"Property", "property_set" + p + ", value)", setNative},
		{"Property", "set_property" + p + ", value)", setNative},
		{"Property", "set" + p + ", value)", setNative},
		{"Property", "bool: property_set_leak" + p + ", delta, interval, max_value, min_value)", func(e *env) int32 {
			return truth(e.s.setLeak(Property(e.Arg(0)), e.Arg(1), e.Arg(2), e.Arg(3), e.Arg(4)))
		}},
		{"Property", "property_leak_enable(bool: enable)", func(e *env) int32 { // PLEO-LEK-04
			p := &e.s.properties
			if e.flag(0) && !p.leaking {
				for _, l := range p.leaks {
					l.next = e.s.now + l.interval
				}
			}
			p.leaking = e.flag(0)
			return 0
		}},
		{"Property", "bool: property_load(const file_name[])", func(e *env) int32 { return truth(e.s.loadProperties(e.text(0))) }},
		{"Property", "bool: property_save(const file_name[])", func(e *env) int32 { return truth(e.s.saveProperties(e.text(0))) }},
		{"Property", "bool: property_add_report" + p + ", min_change, trigger)", reportNative},
		{"Property", "bool: add_reporter" + p + ", min_change, trigger)", reportNative},
		{"Property", "property_enable_reporting(bool: enable)", func(e *env) int32 { e.s.properties.reporting = e.flag(0); return 0 }}, // PLEO-REP-04
	}
}

// driveNatives are those of drives and behaviors (PLEO-XAPI-08).
func driveNatives() []Native {
	trigger := func(e *env) int32 {
		d := e.s.drivers.named(e.text(0))
		if d == nil {
			return 0
		}
		d.low, d.high = e.Arg(1), e.Arg(2)
		return 1
	}
	return []Native{
		{"Drive", "bool: drive_add(const drive_name[], tvl, tvh, interval)", func(e *env) int32 {
			return truth(e.s.addDrive(e.text(0), e.Arg(1), e.Arg(2), e.Arg(3)))
		}},
		{"Drive", "bool: drive_set_trigger_values(const drive_name[], tvl, tvh)", trigger}, // PLEO-DRV-10
		{"Drive", "bool: set_trigger_values(const drive_name[], tvl, tvh)", trigger},
		{"Drive", "bool: drive_set_value(const drive_name[], value)", func(e *env) int32 { // PLEO-DRV-05
			d := e.s.drivers.named(e.text(0))
			if d == nil {
				return 0
			}
			d.value = e.Arg(1)
			e.s.compete()
			return 1
		}},
		{"Drive", "bool: behavior_add(script_name: behavior, const drive_name[], lead_time, upreg, samereg, downreg, interval)", func(e *env) int32 {
			return truth(e.s.addBehavior(e.text(1), behavior{id: e.Arg(0), lead: ms(e.Arg(2)), up: e.Arg(3), same: e.Arg(4), down: e.Arg(5), every: ms(e.Arg(6))}))
		}},
		{"Drive", "bool: behavior_set_value(const drive_name[], script_name: behavior, value)", func(e *env) int32 {
			if d := e.s.drivers.named(e.text(0)); d != nil {
				for _, b := range d.behaviors {
					if b.id == e.Arg(1) {
						b.value = e.Arg(2)
						return 1
					}
				}
			}
			return 0
		}},
	}
}

func applicationNatives() []Native {
	return []Native{
		{"Application", "bool: app_load(const path[])", func(e *env) int32 { return truth(e.s.loadApp(e.m, e.text(0))) }},
		{"Application", "bool: app_unload(const path[] = \"\", bool: power_down = false, power_down_time_ms = 0)", func(e *env) int32 {
			if !e.s.trusted(e.m) {
				return 0
			}
			e.s.unloadApp()
			if e.flag(1) {
				e.s.shutdown("by a script")
			}
			return 1
		}},
		{"Application", "bool: app_is_loaded()", func(e *env) int32 { return truth(e.s.app.loaded) }},
	}
}

// trusted reports whether the script of a machine may unload applications (part of PLEO-APP-09).
func (s *System) trusted(m *machine) bool {
	if s.cfg.Trust == nil || s.cfg.Trust(m.data) {
		return true
	}
	s.log(Warning, LogApplication, "%s: not signed", m.name)
	return false
}

// loadApp loads the application of a bundle in place of the present one (PLEO-APP-08).
func (s *System) loadApp(m *machine, name string) bool {
	if !s.trusted(m) {
		return false
	}
	d, file, err := s.place(name)
	if err != nil {
		s.log(Warning, LogApplication, "load: %v", err)
		return false
	}
	b := s.openBundle(d, d.letter+":"+file, file)
	if b == nil {
		return false
	}
	d.bundle = b
	return s.loadFrom(slices.IndexFunc(s.drives[:], func(o drive) bool { return o.letter == d.letter }))
}
