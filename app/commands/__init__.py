"""The commands of `apidesk`, one file each. Heavy imports stand in the functions that use them."""
