import { openQuestionPage } from "./question-page.js";

openQuestionPage();
