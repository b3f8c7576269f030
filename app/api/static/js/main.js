import { openDesk } from "./desk.js";

openDesk();
