from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CacheAdminConfig(AppConfig):
    name = "cacheadmin"
    verbose_name = _("Cache console")
