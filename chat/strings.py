"""What the page's script says. It has no catalogue of its own: the page hands it these, translated."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

STRINGS: dict[str, str | Promise] = {
    # the connection
    "connecting": _("Connecting…"),
    "offline": _("No connection. Trying again; what you type is kept."),
    "try_now": _("Try now"),
    "signed_out": _("You are signed out."),
    "sign_in": _("Sign in"),
    "reconnected": _("Connected again."),
    # sending
    "sending": _("Sending…"),
    "waiting": _("Waiting for the connection…"),
    "still_answering": _("An answer is being written. Press Esc to stop it."),
    "over_limit": _("{count} over the limit"),
    "left": _("{count} left"),
    # answers
    "started": _("Answer started."),
    "finished": _("Answer finished."),
    "stopped": _("Answer stopped."),
    "ended_early": _("The answer ended early."),
    "renewed": _("The assistant was updated. Answers are made from what it knows now."),
    "copied": _("Copied"),
    "copy_failed": _("Copying did not work"),
    "request_failed": _("That did not work. Check the connection and try again."),
    # refusals, by the code of the error frame
    "error.not_found": _("That message or conversation no longer exists."),
    "error.too_long": _("This text is too long."),
    "error.empty": _("There is nothing to send."),
    "error.rate_limited": _("That was a lot of messages in one minute. Wait a moment, then try again."),
    "error.too_many_open": _("Too many answers are being written at once. Wait for one to finish."),
    "error.too_many_frames": _("Too many requests at once. Wait a moment, then try again."),
    "error.frame_too_large": _("This is too large to send."),
    "error.unavailable": _("The service isn't available at the moment. Try again."),
    "error.engine_unavailable": _("The model can't be reached at the moment. Try again."),
    "error.busy": _("Too many people are asking at the moment. Try again shortly."),
    "error.internal": _("Something went wrong. Try again."),
}
