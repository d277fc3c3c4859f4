//! Certificates: a certification authority and those that it issues.

use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SignatureAlgorithm, date_time_ymd,
};

/// The purpose of a certificate that stamps, as an arc.
pub const TIME_STAMPING: &[u8] = &[6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 8];
const EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37];

/// What a certificate is to say. [`Wanted::authority`] and [`Wanted::stamper`] are right.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The common name.
    pub name: String,
    /// The kind of key.
    pub key: &'static SignatureAlgorithm,
    /// The first day, as year, month, day.
    pub from: (i32, u8, u8),
    /// The day on whose begin it ends.
    pub to: (i32, u8, u8),
    /// Whether it may issue; none leaves the extension out.
    pub ca: Option<bool>,
    /// What the key is for; nothing leaves the extension out.
    pub usage: Vec<KeyUsagePurpose>,
    /// Purposes in DER behind each other, and whether they bind.
    pub purposes: Option<(bool, Vec<u8>)>,
    /// More extensions.
    pub more: Vec<CustomExtension>,
}

impl Wanted {
    /// A certification authority.
    #[must_use]
    pub fn authority(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            key: &PKCS_ECDSA_P256_SHA256,
            from: (2020, 1, 1),
            to: (2040, 1, 1),
            ca: Some(true),
            usage: vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign],
            purposes: None,
            more: Vec::new(),
        }
    }

    /// One that stamps times.
    #[must_use]
    pub fn stamper(name: &str) -> Self {
        Self {
            ca: None,
            from: (2024, 1, 1),
            to: (2034, 1, 1),
            usage: vec![KeyUsagePurpose::DigitalSignature],
            purposes: Some((true, TIME_STAMPING.to_vec())),
            ..Self::authority(name)
        }
    }

    fn params(&self) -> CertificateParams {
        let mut params = CertificateParams::default();
        let mut name = DistinguishedName::new();
        name.push(DnType::OrganizationName, "Throwaway");
        name.push(DnType::CommonName, self.name.as_str());
        params.distinguished_name = name;
        params.not_before = date_time_ymd(self.from.0, self.from.1, self.from.2);
        params.not_after = date_time_ymd(self.to.0, self.to.1, self.to.2);
        params.is_ca = match self.ca {
            Some(true) => IsCa::Ca(BasicConstraints::Unconstrained),
            Some(false) => IsCa::ExplicitNoCa,
            None => IsCa::NoCa,
        };
        params.key_usages.clone_from(&self.usage);
        params.custom_extensions.clone_from(&self.more);
        if let Some((critical, purposes)) = &self.purposes {
            let length = u8::try_from(purposes.len()).expect("few purposes");
            let content = [&[0x30, length], purposes.as_slice()].concat();
            let mut extension = CustomExtension::from_oid_content(EXTENDED_KEY_USAGE, content);
            extension.set_criticality(*critical);
            params.custom_extensions.push(extension);
        }
        params
    }
}

/// A certificate with its key.
#[derive(Debug)]
pub struct Identity {
    /// The certificate in DER.
    pub der: Vec<u8>,
    /// The certificate in PEM.
    pub pem: String,
    /// Its private key.
    pub key: KeyPair,
}

/// A certification authority.
#[derive(Debug)]
pub struct Ca {
    params: CertificateParams,
    /// Its own certificate.
    pub identity: Identity,
}

impl Ca {
    /// Makes an authority whose certificate it signs itself.
    #[must_use]
    pub fn new(wanted: &Wanted) -> Self {
        let key = KeyPair::generate_for(wanted.key).expect("a key");
        Self::with_key(wanted, key)
    }

    /// Makes one with a given key.
    #[must_use]
    pub fn with_key(wanted: &Wanted, key: KeyPair) -> Self {
        let params = wanted.params();
        let certificate = params.self_signed(&key).expect("a certificate");
        let identity = Identity {
            der: certificate.der().to_vec(),
            pem: certificate.pem(),
            key,
        };
        Self { params, identity }
    }

    /// An honest one.
    #[must_use]
    pub fn honest(name: &str) -> Self {
        Self::new(&Wanted::authority(name))
    }

    /// Issues a certificate.
    #[must_use]
    pub fn issue(&self, wanted: &Wanted) -> Identity {
        let key = KeyPair::generate_for(wanted.key).expect("a key");
        let issuer = Issuer::from_params(&self.params, &self.identity.key);
        let certificate = wanted.params().signed_by(&key, &issuer);
        let certificate = certificate.expect("a certificate");
        Identity {
            der: certificate.der().to_vec(),
            pem: certificate.pem(),
            key,
        }
    }
}
