// What a Pleo does that has no card: its button on the belly changes the volume, and with a low battery it lies down and switches itself off.
#include <Application.inc>
#include <Joint.inc>
#include <Log.inc>
#include <Script.inc>
#include <Sensor.inc>
#include <Sound.inc>

#include "sounds.inc"

const LOW = 23;				// percent of the battery
const PATIENCE = 80;			// tenths of a second for the way to the floor

new asleep;

public init()
{
	set_timer_interval(1000);
}

// Folds the legs, so that it rests on its belly with the head down.
lie_down()
{
	joint_move_to(JOINT_LEFT_SHOULDER, 50, 20);
	joint_move_to(JOINT_RIGHT_SHOULDER, 50, 20);
	joint_move_to(JOINT_LEFT_ELBOW, 85, 34);
	joint_move_to(JOINT_RIGHT_ELBOW, 85, 34);
	joint_move_to(JOINT_LEFT_HIP, -40, 16);
	joint_move_to(JOINT_RIGHT_HIP, -40, 16);
	joint_move_to(JOINT_LEFT_KNEE, -65, 26);
	joint_move_to(JOINT_RIGHT_KNEE, -65, 26);
	joint_move_to(JOINT_NECK_VERTICAL, -50, 20);
	joint_move_to(JOINT_NECK_HORIZONTAL, 0, 40);
	joint_move_to(JOINT_TAIL_VERTICAL, -30, 20);
	joint_move_to(JOINT_HEAD, 25, 20);
	for (new tenths = 0; tenths < PATIENCE; tenths++)
	{
		new moving = 0;
		for (new joint_name: j = JOINT_RIGHT_SHOULDER; j <= JOINT_HEAD; j++)
			if (joint_is_moving(j))
				moving++;
		if (!moving)
			break;
		sleep 100;
	}
}

public on_sensor(time, sensor_name: sensor, value)
{
	switch (sensor)
	{
		case SENSOR_TIMER:
			if (!asleep && sensor_get_value(SENSOR_BATTERY) < LOW && !sensor_get_value(SENSOR_POWER_DETECT))
			{
				asleep = 1;
				print("battery low: lying down");
				lie_down();
				app_unload("", true);
			}
		case SENSOR_WAKEUP:
			if (value)
			{
				new volume = sound_get_volume() * 2;
				if (volume > 200)
					volume = 25;
				sound_set_volume(volume);
				sound_play(snd_beep, true);
			}
	}
	return true;
}
