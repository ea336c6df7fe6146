"""Commands that several rules give as a remedy, each in one wording."""

DASHBOARD = "the DGX Dashboard (http://localhost:11000)"
FIRMWARE = "sudo fwupdmgr refresh --force && sudo fwupdmgr update"
NEW_IDENTITY = (
    "sudo rm /etc/machine-id /var/lib/dbus/machine-id; sudo systemd-machine-id-setup; "
    "sudo rm /etc/ssh/ssh_host_*; sudo ssh-keygen -A; sudo reboot"
)
